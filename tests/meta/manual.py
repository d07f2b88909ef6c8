#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The man pages say what the programs say: every command and flag of --help, with its default; every key that the
configuration's parser knows, with type, range and unit as the parser names them when it refuses a value, its default as
the headers of broker/config have it, and whether a reload is enough; the driver's variables; libsluice's functions. The
example of the configuration has the same defaults. The other way round, too: nothing is in a page that is not there.
    manual.py SLUICED SLUICECTL"""
import os
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
    """As root's daemon has it: whose places others are depends on the user's."""
    environment = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    return subprocess.run([*command, "--help"], stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout


def flags_of(text):
    """Each flag of a help text: does it take a value, and which is its default, where the help says so?"""
    found = {}
    for names, rest in re.findall(r"^  (-[^ ]+)((?: [^\n]*)?(?:\n {20,}[^\n]*)*)$", text, re.M):
        takes = re.match(r" (?!Needs:|Excludes:)[A-Z]", rest) is not None
        # CLI11 shows a default behind the type, in brackets or after "=", by its version; a text may name one itself.
        default = re.search(r"^ [^\s=\[]+(?: in \[[^\]]*\])?(?:=| \[)([^\]\s]+)"
                            r"|\b[Dd]efault(?: for this endpoint)?: ((?:[^.\n]|\.(?=\w))+)", rest)
        for name in names.split(","):
            found[name] = (takes, (default.group(1) or default.group(2)).strip() if default else None)
    return found


def plain(text):
    """Without the marks of a page, each run of white space as one space."""
    return re.sub(r"\s+", " ", re.sub(r"[_*\\]", "", text)).strip()


def subcommands_of(text):
    block = re.search(r"^Subcommands:\n(.*?)(?:\n\n|\Z)", text, re.S | re.M)
    return re.findall(r"^  ([a-z][a-z-]*)(?: |$)", block.group(1), re.M) if block else []


def check_flags(what, documented, flags):
    differ(what, {name for name in documented if name.startswith("-")}, set(flags))
    for name, (takes, default) in flags.items():
        body = documented.get(name)
        if body is None or not takes:
            continue
        said = re.search(r"Default: (.*)", plain(body))
        if said is None:
            PROBLEMS.append(f"{what}: {name} takes a value, and its text has no \"Default: \"")
        elif default is not None and not re.search(rf"(?:^|, ){re.escape(plain(default))}(?![\w/-])", said.group(1)):
            PROBLEMS.append(f"{what}: the default of {name} is {plain(default)}, not {said.group(1)}")


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
                   for name in SECTIONS)
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


SECTIONS = ("broker", "worker", "access", "limits", "resources", "scheduling", "pool", "control_groups", "devices", "[network]",
            "[listener]")
# The largest number that the parser takes where no other bound is meant.
UNBOUNDED = 10 ** 12
# Where a page calls a type otherwise than the parser does.
TYPES = {"true or false": "boolean", "a table of strings": "table of strings", "a string": "string",
         "a string or an array of strings": "string or array of strings"}


def refusals_of(program, keys, value):
    """What the parser allows, of each key for which it refuses `value`, by (section, key)."""
    found = {}
    for section, names in keys.items():
        text = f"{section}\n" + "".join(f"{name} = {value}\n" for name in names)
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            answer = subprocess.run([program, "--check-config", file.name], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True, check=False).stderr
        for name, allowed in re.findall(r'key "(\w+)" in \S+ is .*?, allowed is (.*)', answer):
            found[section, name] = allowed
    return found


def type_of(key, allowed, at_least):
    """How the page must begin the type of a key for which the parser says what it allows."""
    unit = {"ms": ", milliseconds", "us": ", microseconds"}.get(key.rsplit("_", 1)[-1], "")
    numbers = re.match(r"an integer from (\d+) to (\d+)", allowed)
    if numbers:
        low, high = map(int, numbers.groups())
        bounds = f", {low} to {high}" if high < UNBOUNDED else f", {low} or more" if low > 0 else ""
        return f"integer{unit}{bounds}"
    if allowed.startswith("a number of bytes"):
        least = re.search(r"at least (\w+)", at_least or "")
        return f"bytes, 0 or at least {least.group(1)}" if least else "bytes"
    if allowed.startswith("one of "):
        return "string, one of " + ", ".join(f'"{word}"' for word in allowed[len("one of "):].split(", "))
    for words, name in (("absolute path", "path"), ("octal", "octal mode"), ("name of a group", "group"),
                        ("name of a user", "user")):
        if words in allowed:
            return f"string, {name}"
    return TYPES.get(allowed, f"string, {allowed}")


def check_types(program, keys, documented):
    """`documented`: by (section, key), what the page says behind "Type: "."""
    wrong_type = refusals_of(program, {name: [key for key in names if key != "environment"]
                                       for name, names in keys.items()}, "{}")
    wrong_type |= refusals_of(program, {"[worker]": ["environment"]}, "1")
    too_little = refusals_of(program, keys, "1")
    for (section, key), said in documented.items():
        allowed = wrong_type.get((section, key))
        if allowed is None:
            PROBLEMS.append(f"this test: the parser takes a table for {section} {key}")
            continue
        wanted = type_of(key, allowed, too_little.get((section, key)))
        whole = wanted.startswith(("integer", "bytes", "boolean", "string, one of"))
        if said != wanted if whole else not re.match(rf"{re.escape(wanted)}(?:,|$)", said):
            PROBLEMS.append(f"sluiced.toml(5), {section} {key}: its type is {wanted}, not {said}")


# Where a field has another name than its key.
FIELDS = {"memory_bytes_per_session": "memory_bytes", "objects_per_session": "objects",
          "in_flight_commands_per_session": "in_flight_commands", "turns": "mode", "turn_grace_us": "grace_us"}
STRUCTS = {"[worker]": ["WorkerConfig"], "[limits]": ["LimitsConfig"], "[resources]": ["ResourcesConfig"], "[scheduling]": ["TurnsConfig"], "[pool]": ["PoolConfig"],
           "[control_groups]": ["ControlGroupsConfig"], "[[network]]": ["NetworkConfig"], "[[listener]]": ["ListenerConfig", "AccountLimits"]}
UNITS = {"GiB": 30, "MiB": 20, "KiB": 10}


def fields_of_the_headers():
    """Of each structure of the configuration, its fields with their first values as the source has them."""
    text = "".join(tree.read(tree.ROOT / "broker" / name)
                   for name in ("config/config.h", "config/sharing_sections.h", "config/listener_config.h",
                                "tenants/tenant.h"))
    constants = dict(re.findall(r"^inline constexpr \w+ (k\w+) = ([^;]+);", text, re.M))
    found = {}
    for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.S | re.M):
        for field, value in re.findall(r"^  [\w:<>, ]+ (\w+) = ([^;]+);", body, re.M):
            found.setdefault(name, {})[field] = constants.get(value, value)
    return found


def default_of(value, bytes_):
    """A first value, as TOML has it; None where it is not written as a plain one."""
    if value in ("true", "false"):
        return value
    word = re.fullmatch(r"[\w:]+::k(\w+)", value)
    if word:
        return f'"{word.group(1).lower()}"'
    number = re.fullmatch(r"([\d']+)(?:ULL)?(?: << (\d+))?", value)
    if number is None:
        return None
    digits, shift = number.group(1).replace("'", ""), int(number.group(2) or 0)
    unit = next((name for name, bits in UNITS.items() if bits == shift - shift % 10 and bytes_ and shift), "")
    return f'"{int(digits) << shift % 10}{unit}"' if unit else str(int(digits) << shift)


def check_defaults(documented, types):
    """`documented`: by (section, key), what the page says behind "Default: "."""
    fields = fields_of_the_headers()
    compared = set()
    for (section, key), said in documented.items():
        value = next((fields[name][field] for name in STRUCTS.get(section, ["Config"])
                      for field in (FIELDS.get(key, key), key) if field in fields[name]), None)
        default = default_of(value, types[section, key].startswith("bytes")) if value is not None else None
        # A mode of 0 stands for what the page says in words.
        if default is None or key.endswith("mode"):
            continue
        compared.add((section, key))
        if said != f"_{default}_":
            PROBLEMS.append(f"sluiced.toml(5), {section} {key}: the default is {default}, not {said}")
    numbers = {place for place, kind in types.items()
               if kind.startswith(("integer", "bytes", "boolean")) and place != ("[[network]]", "memory_bytes")}
    for section, key in sorted(numbers - compared):
        PROBLEMS.append(f"this test: broker/config has no first value of {section} {key}")


def check_places(documented):
    """Defaults that are paths: where the program has them, for root's daemon and for a user's."""
    linux = tree.ROOT / "platform_linux"
    socket = re.search(r'"/run", "(/\S+)"', re.sub(r"\s+", " ", tree.read(linux / "daemon_places.cc").replace(
        'runtime : "/run"', '"/run"'))).group(1)
    base = socket.removesuffix("/clients/broker.sock")
    cache = re.search(r'kDefaultCacheRoot\[\] = "([^"]+)"', tree.read(linux / "broker/worker_users.cc")).group(1)
    for place, path, own in ((("[broker]", "socket"), socket, True),
                             (("[broker]", "admin_socket"), f"{base}-admin/admin.sock", True),
                             (("[broker]", "monitor_socket"), f"{base}-admin/monitor.sock", True),
                             (("[[listener]]", "path"), f"{base}-tenants/TENANT/broker.sock", False)):
        wanted = f"_/run{path}_ for root's daemon"
        wanted += f", _$XDG\\_RUNTIME\\_DIR{path}_ for a user's" if own else ""
        if documented[place] != wanted:
            PROBLEMS.append(f"sluiced.toml(5), {' '.join(place)}: the default is {wanted}, not {documented[place]}")
    said = documented["[worker]", "cache_directory"]
    if not said.startswith(f"_{cache}_ if it exists"):
        PROBLEMS.append(f"sluiced.toml(5), [worker] cache_directory: the default is {cache}, not {said}")


def kept_at_reload():
    """What the broker keeps at SIGHUP, and what is only looked at when the socket is made."""
    broker = tree.read(tree.ROOT / "broker/broker.cc")
    opened = re.search(r"OpenListener\(\{([^}]*)\}\)", tree.read(tree.ROOT / "broker/client_socket.cc")).group(1)
    return set(re.findall(r"fresh->(\w+) = config_\.\1;", broker)) | set(re.findall(r"config\.(\w+)", opened))


def as_written(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


def check_configuration(program):
    text = page("sluiced.toml.5")
    written = tree.read(tree.ROOT / "deploy/linux/sluiced.toml")
    # With its commented keys: a default, or a value for example.
    example = tomllib.loads(re.sub(r"^#(?=\w+ = |\[)", "", written, flags=re.M))
    commented = set(re.findall(r"^#(\w+) = ", written, re.M))
    kept = kept_at_reload()
    types, defaults = {}, {}
    all_keys = keys_of(program)
    for name, keys in all_keys.items():
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
            types[name, key] = line.group(1).replace("_", "")
            defaults[name, key] = line.group(2)
            table = example.get(plain, {})
            value = (table[0] if isinstance(table, list) else table).get(key)
            if value is None:
                PROBLEMS.append(f"deploy/linux/sluiced.toml: {name} has no {key}")
            # A commented key stands for its default where that is one value: "_1024_".
            elif (not isinstance(value, dict) and (key not in commented or re.fullmatch(r"_\S+_", line.group(2))) and
                  line.group(2) != f"_{as_written(value)}_"):
                PROBLEMS.append(f"sluiced.toml(5), {name} {key}: the example's default is {as_written(value)}")
    check_types(program, all_keys, types)
    check_defaults(defaults, types)
    check_places(defaults)


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
