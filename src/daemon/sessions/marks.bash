# Marks in the prompt report its begin, its end and the exit code of the last command; PS0 reports the begin of a
# command. If the user sets another prompt, it is marked before it is shown. Output of the user's own PROMPT_COMMAND does
# not count as a command's. Each prompt has a number: a prompt that is only redrawn has the same number.
# The marks do not appear in a trace (set -x) nor in redirected output of the shell (exec >file), and they work with any
# setting of the user (set -eu, IFS).
__missiond_n=0
__missiond_over() {
  local code=$?
  printf '\e]133;E;missiond=@TOKEN@\a' >&3
  # A shell with set -e would end because of this code; its prompt has the code in any case.
  [[ $- == *e* ]] || return "$code"
}
__missiond_mark() {
  local d='\[\e]133;D;$?;$((__missiond_n+=1));missiond=@TOKEN@\a\e]133;A;missiond=@TOKEN@\a\]'
  local b='\[\e]133;B;missiond=@TOKEN@\a\]'
  local c='\e]133;C;missiond=@TOKEN@\a'
  local p='\[\e]133;P;k=c;missiond=@TOKEN@\a\]'
  local ps0=${PS0-} ps1=${PS1-} ps2=${PS2-}
  shopt -s promptvars
  if [[ $ps1 != "$d"*"$b" ]]; then
    ps1=${ps1//"$d"/}
    PS1=$d${ps1//"$b"/}$b
  fi
  [[ $ps2 == *"$p" ]] || PS2=$ps2$p
  [[ $ps0 == *"$c" ]] || PS0=$ps0$c
  __missiond_hook
}
# Adds both functions to PROMPT_COMMAND, the one first, the other last. A read-only PROMPT_COMMAND is not changed; the
# marks that are in the prompt already work without it.
__missiond_hook() {
  local first='{ __missiond_over; } 3>&2 2>/dev/null' last='{ __missiond_mark; } 2>/dev/null'
  local own=() one
  [[ ${PROMPT_COMMAND-} != "$first"* ]] || return 0
  (PROMPT_COMMAND=) 2>/dev/null || return 0
  if (( BASH_VERSINFO[0] > 5 || (BASH_VERSINFO[0] == 5 && BASH_VERSINFO[1] >= 1) )); then
    for one in "${PROMPT_COMMAND[@]}"; do
      [[ $one == "$last" ]] || own+=("$one")
    done
    PROMPT_COMMAND=("$first" "${own[@]}" "$last")
  else
    PROMPT_COMMAND="$first${PROMPT_COMMAND:+
$PROMPT_COMMAND}
$last"
  fi
}
{ __missiond_mark; } 2>/dev/null
