#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The man pages say what the programs say: every command and flag of --help, with its default; every key that the
configuration's parser knows, with type, default, and whether a reload is enough; the driver's variables; libsluice's
functions. The other way round, too: nothing is in a page that is not there.
    manual.py SLUICED SLUICECTL"""
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

import tree

PROBLEMS = []
PAGES = tree.ROOT / "deploy/man"
SYSTEM = {"install", "uninstall"}  # Windows' commands of sluicectl, which no other system's --help has.


def page(name):
    return tree.read(PAGES / f"{name}.scd")


def section(text, title):
    """What stands below a heading, up to the next one of the same level or a higher one."""
    marks = title.split(" ", 1)[0]
    found = re.search(rf"^{re.escape(title)}\n(.*?)(?=^#{{1,{len(marks)}}} |\Z)", text, re.S | re.M)
    return found.group(1) if found else ""


def entries(text):
    """The definitions of a page: each name that a line of bold words gives, with the text below it."""
    found = {}
    for head, body in re.findall(r"^(\*[^\n]*\*[^\n]*)\n((?:\t[^\n]*\n|\n(?=\t))+)", text, re.M):
        for name in re.findall(r"\*([^*]+)\*", head):
            found[name] = body
    return found


def differ(what, documented, real):
    for name in sorted(documented - real):
        PROBLEMS.append(f"{what}: {name} is documented and is not there")
    for name in sorted(real - documented):
        PROBLEMS.append(f"{what}: {name} is there and is not documented")


def help_of(*command):
    return subprocess.run([*command, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout


def flags_of(text):
    """Each flag of a help text: does it take a value, and which is its default, where the help says so?"""
    found = {}
    for names, rest in re.findall(r"^  (-[^ ]+)((?: [^\n]*)?(?:\n {20,}[^\n]*)*)$", text, re.M):
        takes = re.match(r" (?!Needs:|Excludes:)[A-Z]", rest) is not None
        # CLI11 shows a default behind the type, in brackets or after "=", by its version; a text may name one itself.
        default = re.search(r"^ [^\s=\[]+(?: in \[[^\]]*\])?(?:=| \[)([^\]\s]+)|\bdefault: ([^\s,;]+)", rest)
        for name in names.split(","):
            found[name] = (takes, (default.group(1) or default.group(2)).rstrip(".") if default else None)
    return found


def subcommands_of(text):
    block = re.search(r"^Subcommands:\n(.*?)(?:\n\n|\Z)", text, re.S | re.M)
    return re.findall(r"^  ([a-z][a-z-]*)(?: |$)", block.group(1), re.M) if block else []


def check_flags(what, documented, flags):
    differ(what, {name for name in documented if name.startswith("-")}, set(flags))
    for name, (takes, default) in flags.items():
        body = documented.get(name)
        if body is None or not takes:
            continue
        said = re.search(r"Default: (\S+)", body)
        if said is None:
            PROBLEMS.append(f"{what}: {name} takes a value, and its text has no \"Default: \"")
        elif default is not None and re.sub(r"[_*\\]", "", said.group(1)).rstrip(".,;") != default.replace("_", ""):
            PROBLEMS.append(f"{what}: the default of {name} is {default}, not {said.group(1)}")


def check_sluiced(program):
    check_flags("sluiced(8)", entries(section(page("sluiced.8"), "# OPTIONS")), flags_of(help_of(program)))


def check_command(text, program, names, common):
    """One command of sluicectl, and those below it. Its flags are its own, or common ones."""
    own_help = help_of(program, *names)
    flags = flags_of(own_help)
    title = "## " + " ".join(names)
    body = section(text, title)
    if not body:
        return PROBLEMS.append(f"sluicectl(1): there is no section \"{title}\"")
    documented = entries(body)
    for flag in flags:
        if flag not in documented and flag in common:
            documented[flag] = common[flag]
    check_flags(f"sluicectl(1), {' '.join(names)}", documented, flags)
    for name in subcommands_of(own_help):
        check_command(text, program, [*names, name], common)


def check_sluicectl(program):
    text = page("sluicectl.1")
    common = entries(section(text, "# COMMON FLAGS"))
    top = help_of(program)
    for flag in set(flags_of(top)) - set(common):
        PROBLEMS.append(f"sluicectl(1), COMMON FLAGS: {flag} is there and is not documented")
    commands = subcommands_of(top)
    for name in commands:
        check_command(text, program, [name], common)
    documented = set(re.findall(r"^## ([a-z-]+)(?: [a-z-]+)*$", section(text, "# COMMANDS"), re.M))
    differ("sluicectl(1), COMMANDS", documented - SYSTEM, set(commands))


def keys_of(program):
    """Of each section the keys that the parser knows: it lists them where it finds one that it does not know."""
    text = "".join(f"[{name}]\nno_such_key = 1\n"
                   for name in ("broker", "worker", "access", "limits", "resources", "scheduling", "devices",
                                "[network]", "[listener]"))
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "sluiced.toml"
        file.write_text(text, encoding="utf-8")
        answer = subprocess.run([program, "--check-config", str(file)], stderr=subprocess.PIPE, text=True,
                                check=False).stderr
        file.write_text("no_such_key = 1\n", encoding="utf-8")
        top = subprocess.run([program, "--check-config", str(file)], stderr=subprocess.PIPE, text=True,
                             check=False).stderr
    keys = {name: allowed.split(", ") for name, allowed in
            re.findall(r'unknown key "no_such_key" in (\[+\w+\]+); allowed are ([\w, ]+)', answer)}
    differ("this test, sections of sluiced.toml", {name.strip("[]") for name in keys},
           set(re.search(r"allowed are ([\w, ]+)", top).group(1).split(", ")))
    return keys


def kept_at_reload():
    """What the broker keeps at SIGHUP, and what is only looked at when the socket is made."""
    broker = tree.read(tree.ROOT / "broker/broker.cc")
    opened = re.search(r"OpenListener\(\{([^}]*)\}\)", broker).group(1)
    return set(re.findall(r"fresh->(\w+) = config_\.\1;", broker)) | set(re.findall(r"config_\.(\w+)", opened))


def as_written(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


def check_configuration(program):
    text = page("sluiced.toml.5")
    example = tomllib.loads(tree.read(tree.ROOT / "deploy/linux/sluiced.toml"))
    kept = kept_at_reload()
    for name, keys in keys_of(program).items():
        documented = entries(section(text, f"# {name}"))
        plain = name.strip("[]")
        differ(f"sluiced.toml(5), {name}", set(documented), set(keys))
        for key in sorted(set(documented) & set(keys)):
            line = re.match(r"\tType: ([^.]+)\. Default: (.+)\. Change: (reload|restart)\.\n", documented[key])
            if line is None:
                PROBLEMS.append(f"sluiced.toml(5), {name} {key}: no line \"Type: . Default: . Change: .\"")
                continue
            restart = plain in kept or (plain == "broker" and key in kept)
            if (line.group(3) == "restart") != restart:
                PROBLEMS.append(f"sluiced.toml(5), {name} {key}: the broker has it otherwise, not {line.group(3)}")
            value = example.get(plain, {}).get(key) if plain != "network" else None
            if value is not None and not isinstance(value, dict) and line.group(2) != f"_{as_written(value)}_":
                PROBLEMS.append(f"sluiced.toml(5), {name} {key}: the example's default is {as_written(value)}")


def check_variables():
    real = set()
    for path in tree.files(".cc"):
        if tree.relative(path).startswith("client_icd/"):
            text = tree.read(path)
            real |= set(re.findall(r'(?:getenv|[Vv]ariable|get|environment),?\s*\(?\s*"(SLUICE_[A-Z_]+)"', text))
    variables = entries(section(page("sluice-opencl.7"), "# VARIABLES"))
    documented = {name for name in variables if name.startswith("SLUICE_")}
    for name in sorted(real - documented):
        PROBLEMS.append(f"sluice-opencl(7): {name} is read and is not documented")
    sources = "".join(tree.read(path) for path in tree.files(".cc", ".h"))
    for name in sorted(documented):
        if f'"{name}"' not in sources:
            PROBLEMS.append(f"sluice-opencl(7): {name} is documented and nobody reads it")


def check_library():
    header = re.sub(r"/\*.*?\*/", "", tree.read(tree.ROOT / "client_icd/libsluice/sluice/sluice.h"), flags=re.S)
    text = page("libsluice.3")
    functions = set(re.findall(r"\b(sluice_\w+)\(", header))
    documented = set(re.findall(r"^\S[^\n]* \*?(sluice_\w+)\(", section(text, "# FUNCTIONS"), re.M))
    differ("libsluice(3), functions", documented, functions)
    differ("libsluice(3), statuses", set(entries(section(text, "# RETURN VALUE"))),
           set(re.findall(r"\b(SLUICE_\w+) = \d+", header.split("} sluice_status;")[0])))


def main():
    sluiced, sluicectl = sys.argv[1:]
    for program in (sluiced, sluicectl):
        if not pathlib.Path(program).exists():
            print(f"skipped: {program} is not built")
            sys.exit(77)
    check_sluiced(sluiced)
    check_sluicectl(sluicectl)
    check_configuration(sluiced)
    check_variables()
    check_library()
    tree.finish(PROBLEMS, "the man pages say what the programs say")


if __name__ == "__main__":
    main()
