# The prompt says where it begins and ends and how the last command ended; PS0 says that one begins. A prompt
# that is set anew is marked before it is shown, and what the user's own PROMPT_COMMAND prints is no command's.
# Each prompt has a number: one that is only drawn again has the same.
# Nothing of this shows in a trace (set -x), nor goes where the user sends the output of the shell (exec >file),
# and it holds with whatever the user has set (set -eu, IFS).
__missiond_n=0
__missiond_over() {
  local code=$?
  printf '\e]133;E;missiond=@TOKEN@\a' >&3
  # A shell that ends with the first failure (set -e) would take the code for one; its prompt has it all the same.
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
# Puts both into PROMPT_COMMAND: the one first, the other last. One that is read-only stays as it is; the marks
# that are in the prompt by then do without it.
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
