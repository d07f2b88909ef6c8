# SPDX-License-Identifier: Apache-2.0
# Completion of sluicectl and sluiced for bash. Commands and flags are those that --help of the program at hand names,
# so that this file need not change with them; ids of sessions come from `sluicectl sessions --json`.
# shellcheck shell=bash

# Flags in the help text on stdin, one a line.
_sluice_flags() { sed -n 's/^  \(-[^ ]*\).*/\1/p' | tr , '\n'; }

# The kind of value that a flag takes, as the help text on stdin names it: FILE, PATH, ... Nothing: it takes none.
_sluice_value_of() {
  sed -n 's/^  \(-[^ ]*\) \([A-Z][A-Z_/]*\)\([ :].*\|$\)/,\1, \2/p' | sed -n "s/^.*,$1,[^ ]* //p"
}

_sluice_subcommands() { sed -n '/^Subcommands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p'; }

# Completes a value of kind $1 that begins with $2.
_sluice_complete_value() {
  case $1 in
    FILE | PATH) mapfile -t COMPREPLY < <(compgen -f -- "$2"); compopt -o filenames 2>/dev/null ;;
    DIR | DIRECTORY) mapfile -t COMPREPLY < <(compgen -d -- "$2"); compopt -o filenames 2>/dev/null ;;
    LEVEL) mapfile -t COMPREPLY < <(compgen -W 'trace debug info warning error' -- "$2") ;;
    NAME) mapfile -t COMPREPLY < <(compgen -u -- "$2") ;;
  esac
}

_sluice() {
  local program=${1/#\~/$HOME} word=$2 help flag kind i
  local commands=() daemon=()
  COMPREPLY=()
  type "$program" >/dev/null 2>&1 || return 0
  help=$("$program" --help 2>/dev/null)
  # The words before this one: which command it is, and whether this one is a flag's value.
  for ((i = 1; i < COMP_CWORD; i++)); do
    flag=${COMP_WORDS[i]}
    if [[ $flag == -- ]]; then  # A program and its own arguments follow.
      ((i++))
      if ((i < COMP_CWORD)) && declare -F _command_offset >/dev/null; then
        _command_offset "$i"
      elif ((i < COMP_CWORD)); then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
      else
        mapfile -t COMPREPLY < <(compgen -c -- "$word")
      fi
      return 0
    elif [[ $flag == -* ]]; then
      kind=$(_sluice_value_of "$flag" <<<"$help")
      [[ -n $kind ]] || continue
      [[ ${COMP_WORDS[i + 1]:-} != = ]] || ((i++))  # --flag=VALUE is three words for bash.
      ((i++))
      if ((i >= COMP_CWORD)); then
        [[ $word != = ]] || word=
        _sluice_complete_value "$kind" "$word"
        return 0
      fi
      [[ $flag != --endpoint && $flag != --admin-socket ]] || daemon+=("$flag" "${COMP_WORDS[i]}")
    elif _sluice_subcommands <<<"$help" | grep -qx -- "$flag"; then
      commands+=("$flag")
      help=$("$program" "${commands[@]}" --help 2>/dev/null)
    fi
  done
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_sluice_flags <<<"$help")" -- "$word")
  elif [[ ${commands[*]} == kill ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$program" sessions --json "${daemon[@]}" 2>/dev/null |
      sed -n 's/.*"session": "\([0-9a-f]*\)".*/\1/p')" -- "$word")
  elif [[ ${commands[*]} == run ]]; then
    mapfile -t COMPREPLY < <(compgen -W "-- $(_sluice_flags <<<"$help")" -- "$word")
  elif [[ -n $(_sluice_subcommands <<<"$help") ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_sluice_subcommands <<<"$help")" -- "$word")
  else
    kind=$(sed -n '/^Positionals:/,/^$/s/^  [^ ]* \([A-Z][A-Z_]*\).*/\1/p' <<<"$help" | head -n 1)
    _sluice_complete_value "$kind" "$word"
  fi
  return 0
}

complete -F _sluice sluicectl sluiced
