# The prompt says where it begins and ends and how the last command ended; PS0 says that one begins. A prompt
# that is set anew is marked before it is shown, and what the user's own PROMPT_COMMAND prints is no command's.
# Each prompt has a number: one that is only drawn again has the same.
# Nothing of this shows in a trace (set -x), nor goes where the user sends the output of the shell (exec >file).
__missiond_n=0
__missiond_over() {
  local code=$?
  printf '\e]133;E;missiond=@TOKEN@\a' >&3
  return $code
}
__missiond_mark() {
  local d='\[\e]133;D;$?;$((__missiond_n+=1));missiond=@TOKEN@\a\e]133;A;missiond=@TOKEN@\a\]'
  local b='\[\e]133;B;missiond=@TOKEN@\a\]'
  local c='\e]133;C;missiond=@TOKEN@\a'
  local p='\[\e]133;P;k=c;missiond=@TOKEN@\a\]'
  shopt -s promptvars
  if [[ $PS1 != "$d"*"$b" ]]; then
    PS1=${PS1//"$d"/}
    PS1=$d${PS1//"$b"/}$b
  fi
  [[ $PS2 == *"$p" ]] || PS2=$PS2$p
  [[ $PS0 == *"$c" ]] || PS0=$PS0$c
}
__missiond_first='{ __missiond_over; } 3>&2 2>/dev/null'
__missiond_last='{ __missiond_mark; } 2>/dev/null'
if (( BASH_VERSINFO[0] > 5 || (BASH_VERSINFO[0] == 5 && BASH_VERSINFO[1] >= 1) )); then
  PROMPT_COMMAND=("$__missiond_first" "${PROMPT_COMMAND[@]}" "$__missiond_last")
else
  PROMPT_COMMAND="$__missiond_first${PROMPT_COMMAND:+
$PROMPT_COMMAND}
$__missiond_last"
fi
unset __missiond_first __missiond_last
