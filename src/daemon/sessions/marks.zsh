# Marks in the prompt report its begin, its end and the exit code of the last command; preexec reports the begin of a
# command. If the user sets another prompt, it is marked before it is shown. Each prompt has a number: a prompt that is
# only redrawn has the same number. The marks do not appear in a trace (set -x) nor in redirected output of the shell
# (exec >file).
typeset -gi __missiond_n=0
emulate zsh +x -c '
__missiond_mark() {
  local d=$'\''%{\e]133;D;%?;'\'' a=$'\'';missiond=@TOKEN@\a\e]133;A;missiond=@TOKEN@\a%}'\''
  local b=$'\''%{\e]133;B;missiond=@TOKEN@\a%}'\''
  local p=$'\''%{\e]133;P;k=c;missiond=@TOKEN@\a%}'\''
  PS1=${PS1//"$d"<->"$a"/}
  (( ++__missiond_n ))
  PS1=$d$__missiond_n$a${PS1//"$b"/}$b
  [[ $PS2 == *"$p" ]] || PS2=$PS2$p
}
__missiond_run() { printf "\e]133;C;missiond=@TOKEN@\a" >$TTY }
'
# Before a prompt, zsh marks an unfinished last line of the output: the output ends before that mark.
PROMPT_EOL_MARK=$'%{\e]133;E;missiond=@TOKEN@\a%}'${PROMPT_EOL_MARK-%B%S%#%s%b}
precmd_functions+=(__missiond_mark)
preexec_functions+=(__missiond_run)
