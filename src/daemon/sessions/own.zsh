# The user's own file, with ZDOTDIR as the user has it while it is read.
__missiond_zdotdir=$ZDOTDIR
if [[ -n $MISSIOND_ZDOTDIR ]]; then ZDOTDIR=$MISSIOND_ZDOTDIR; else unset ZDOTDIR; fi
[[ -r ${ZDOTDIR:-$HOME}/@FILE@ ]] && . ${ZDOTDIR:-$HOME}/@FILE@
if [[ @FILE@ == .zshrc ]]; then
  unset __missiond_zdotdir MISSIOND_ZDOTDIR
else
  [[ -n $ZDOTDIR ]] && MISSIOND_ZDOTDIR=$ZDOTDIR
  ZDOTDIR=$__missiond_zdotdir
fi
