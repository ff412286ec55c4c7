"""`lcd completion SHELL`: what a shell needs to complete commands, keys and names."""

from __future__ import annotations

import shlex

from lcd.cli import COMMANDS, SWITCHES
from lcd.config.budgets import choices
from lcd.config.help import key_table
from lcd.config.keys import GROUPS, NAMED_ELSEWHERE, groups, registered
from lcd.config.schemas import SCHEMAS, CompletionConfig
from lcd.envs.errors import InputError, nearest

BASH = """\
# Completion of lcd for {shell}: eval "$(lcd completion {shell})", in your shell's start-up file.
_lcd_words() {{
    case "$1" in
{cases}
    esac
}}
_lcd() {{
    local line="${{COMP_LINE:0:COMP_POINT}}" current command prefix word found=()
    current="${{line##* }}"
    command="${{COMP_WORDS[1]}}"
    if [ "$COMP_CWORD" -le 1 ]; then command=""; fi
    COMPREPLY=($(compgen -W "$(_lcd_words "$command")" -- "$current"))
    # Readline replaces what follows the last = or : alone.
    prefix="${{current%"${{current##*[=:]}}"}}"
    for word in "${{COMPREPLY[@]}}"; do
        word="${{word#"$prefix"}}"
        if [ -n "$word" ]; then found+=("$word"); fi
    done
    COMPREPLY=("${{found[@]}}")
    if [[ "${{COMPREPLY[0]}}" == *= ]]; then compopt -o nospace 2> /dev/null; fi
}}
complete -o default -F _lcd lcd
"""
ZSH = "autoload -Uz bashcompinit && bashcompinit\n"
FISH_HEAD = "# Completion of lcd for fish: lcd completion fish > ~/.config/fish/completions/lcd.fish\n"
SHELLS = ("bash", "zsh", "fish")


def run(cfg: CompletionConfig) -> int:
    """Print the script; returns the exit code."""
    if cfg.shell is None or cfg.shell not in SHELLS:
        given = "shell is missing" if cfg.shell is None else f"shell={cfg.shell} is unknown"
        raise InputError(f"{given}: {nearest(cfg.shell or '', SHELLS)}")
    print(script(cfg.shell), end="")
    return 0


def script(shell: str) -> str:
    """What a shell reads: a function that knows all words, so that nothing of ours is started for it."""
    words = {command: words_of(command) for command in COMMANDS}
    if shell == "fish":
        lines = [f"complete -c lcd -n __fish_use_subcommand -f -a {shlex.quote(' '.join(words))}"]
        for command, known in words.items():
            lines.append(
                f"complete -c lcd -n '__fish_seen_subcommand_from {command}' -a {shlex.quote(' '.join(known))}"
            )
        return FISH_HEAD + "\n".join(lines) + "\n"
    cases = [f"        {command}) echo {shlex.quote(' '.join(known))} ;;" for command, known in words.items()]
    cases.append(f"        '') echo {shlex.quote(' '.join(words))} ;;")
    made = BASH.format(shell=shell, cases="\n".join(cases))
    return ZSH * (shell == "zsh") + made


def words_of(command: str) -> list[str]:
    """What may come behind a command: keys with an equals sign, groups with each of their choices, switches."""
    taken = groups(command)
    keys = [f"{key}=" for key, _, _ in key_table(command)]
    named = [f"{group}={name}" for group in taken for name in _names(group)]
    limited = [f"{key}={option}" for key, option in _options(command)]
    known = {*keys, *(f"{group}=" for group in taken)}
    switches = [word for word, stands_for in SWITCHES.items() if f"{stands_for.partition('=')[0]}=" in known]
    return sorted({*known, *named, *limited, *switches, "--help"})


def _names(group: str) -> list[str]:
    found = registered(group) if group in NAMED_ELSEWHERE or group == "task" else []
    return sorted({*found, *(choices(group) if group in GROUPS and group != "task" else [])})


def _options(command: str) -> list[tuple[str, str]]:
    from lcd.config.keys import schema_fields

    fields = schema_fields(SCHEMAS[command])
    return [(key, str(option)) for key, entry in fields for option in entry.metadata.get("choices") or ()]
