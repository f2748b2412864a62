//! The table of programs and what is harmful about them.

use super::{Harm, git, scripts};
use crate::policy::shell::Word;

pub struct Row {
    /// Names, with blanks between them, as in every list of this table.
    pub programs: &'static str,
    pub danger: Danger,
}

/// What is harmful. The texts complete a sentence that begins with the program or the option.
pub enum Danger {
    /// Whatever its arguments are.
    Always(&'static str),
    /// These options: letters, words with one or two dashes, and letters that take a value (the rest of their word).
    Options {
        short: &'static str,
        long: &'static str,
        valued: &'static str,
        why: &'static str,
    },
    /// These words, such as subcommands.
    Words(&'static str, &'static str),
    /// Words that contain one of these.
    Text(&'static str, &'static str),
    /// More operands than this.
    Operands { most: usize, why: &'static str },
    /// What a function finds.
    Judged(fn(&[Word]) -> Vec<Harm>),
}

use Danger::{Always, Judged, Operands, Text, Words};

const RUNS: &str = "run another program";
const WRITES: &str = "write a file";
const EITHER: &str = "run another program or write a file";
const RUNS_WORDS: &str = "runs the program that its arguments name";
const RUNS_CODE: &str = "run code from the command line";

const fn row(programs: &'static str, danger: Danger) -> Row {
    Row { programs, danger }
}

const fn options(short: &'static str, long: &'static str, why: &'static str) -> Danger {
    Danger::Options {
        short,
        long,
        valued: "",
        why,
    }
}

const fn valued(
    short: &'static str,
    valued: &'static str,
    long: &'static str,
    why: &'static str,
) -> Danger {
    Danger::Options {
        short,
        long,
        valued,
        why,
    }
}

pub const TABLE: &[Row] = &[
    // Programs that run what they are given.
    row(
        "env sudo doas pkexec su runuser command builtin exec eval source . watch setsid \
            ionice flock chrt taskset chroot unshare nsenter systemd-run systemd-inhibit \
            parallel busybox toybox strace ltrace gdb lldb perf script expect screen tmux entr \
            hyperfine watchexec noglob nocorrect coproc unbuffer rlwrap caffeinate xvfb-run \
            firejail bwrap at batch crontab xargs timeout nice nohup stdbuf time proxychains \
            proxychains4 torsocks torify setarch linux32 linux64 prlimit cgexec daemonize \
            start-stop-daemon faketime dbus-run-session ssh-agent dotenv direnv mise asdf \
            ld.so",
        Always(RUNS_WORDS),
    ),
    row(
        "sh bash zsh dash ksh mksh ash fish rbash csh tcsh pwsh tclsh",
        Always("is a shell and can run anything"),
    ),
    row(
        "vi vim nvim view ex ed emacs nano pico sqlite3 psql mysql gnuplot bc dc socat ncat \
            nc telnet ftp sftp lftp info pinfo mail mutt",
        Always("can run other programs or write files from its input"),
    ),
    row(
        "alias unalias bind enable hash trap set shopt read mapfile readarray getopts let \
            fc jobs complete compgen compopt export declare typeset local readonly unset \
            function functions autoload zmodload zle vared sched emulate setopt unsetopt wait \
            history",
        Always("changes how the shell understands what follows"),
    ),
    row("printf", options("v", "", "set a variable of the shell")),
    row("test [", Words("-v -R", "evaluates what it is given")),
    row(
        "wget aria2c axel",
        Always("writes files whose names others choose"),
    ),
    // Programs with a language of their own.
    row("git", Judged(git::harms)),
    row("find", Judged(scripts::find_harms)),
    row("sed gsed", Judged(scripts::sed_harms)),
    row("awk gawk mawk nawk", Judged(scripts::awk_harms)),
    row("tar gtar bsdtar", Judged(scripts::tar_harms)),
    row("make gmake", Judged(scripts::make_harms)),
    // Options of ordinary programs.
    row("fd fdfind", options("xX", "--exec --exec-batch", RUNS)),
    row("rg", options("", "--pre --hostname-bin --search-zip", RUNS)),
    row("rg", valued("z", "ABCEefgjmMrtT", "", RUNS)),
    row("ag", options("", "--pager", RUNS)),
    row(
        "sort",
        valued("o", "kSTt", "--output --compress-program", EITHER),
    ),
    row(
        "uniq",
        Operands {
            most: 1,
            why: "writes the second file that it is given",
        },
    ),
    row("shuf", options("o", "--output", WRITES)),
    row("split", options("", "--filter", RUNS)),
    row("dd", Text("of=", WRITES)),
    row("patch", Always("writes the files that its input names")),
    row("fzf m4", Always("can run other programs from its input")),
    row("unzip", Judged(scripts::unzip_harms)),
    row("xxd cmp3", options("r", "-revert", WRITES)),
    row(
        "xxd",
        Operands {
            most: 1,
            why: "writes the second file that it is given",
        },
    ),
    row("tree", options("oR", "--output", WRITES)),
    row("sdiff iconv nm objdump", options("o", "--output", WRITES)),
    row("diff pr", options("l", "--paginate", RUNS)),
    row(
        "date",
        options("sf", "--set --file", "change the clock or read a file"),
    ),
    row(
        "hostname domainname",
        Operands {
            most: 0,
            why: "sets the name of the machine",
        },
    ),
    row("file", options("Cm", "--compile --magic-file", WRITES)),
    row(
        "man",
        valued(
            "PHXCl",
            "eEkLmMprRsS",
            "--pager --html --gxditview --config-file --local-file --browser",
            RUNS,
        ),
    ),
    row(
        "less more most",
        options(
            "oOkK",
            "--log-file --LOG-FILE --lesskey-file --lesskey-src",
            WRITES,
        ),
    ),
    row("less more", Text("+", RUNS)),
    row("bat batcat", options("", "--pager --diff-filter", RUNS)),
    row(
        "jq",
        options("fL", "--from-file --library-path", "run code from a file"),
    ),
    row(
        "yq",
        options("i", "--inplace --in-place --split-exp", WRITES),
    ),
    row(
        "curl",
        valued(
            "oOKTcDJ",
            "AbCdeEFHmPQrtUuwXxyYz",
            "--output --output-dir --remote-name --remote-name-all --remote-header-name \
            --config --upload-file --cookie-jar --dump-header --trace --trace-ascii --stderr \
            --libcurl --etag-save --hsts --alt-svc --engine --create-dirs --unix-socket --key \
            --cert --netrc-file --proxy-header --ssl-sessions",
            "write or send a file",
        ),
    ),
    row(
        "curl",
        Text("@ %output{ file: { [", "write, read or send files"),
    ),
    row("ssh scp slogin", options("oFJESWLRDwISi", "", EITHER)),
    row(
        "ssh",
        Operands {
            most: 1,
            why: "runs a program on another machine",
        },
    ),
    row(
        "rsync",
        valued(
            "e",
            "fBMT",
            "--rsh --rsync-path --daemon --config --log-file --write-batch --read-batch \
            --files-from --password-file --early-input",
            EITHER,
        ),
    ),
    row(
        "zip zipcloak",
        options("TOm", "--unzip-command --test --output-file --move", EITHER),
    ),
    row("7z 7za 7zz", Text("-o -sfx", WRITES)),
    row(
        "7z 7za 7zz",
        Words("x e", "writes files whose names others choose"),
    ),
    row(
        "hg",
        options(
            "R",
            "--config --config-file --repository --cwd --pager",
            RUNS,
        ),
    ),
    row(
        "svn",
        options(
            "",
            "--config-option --config-dir --diff-cmd --diff3-cmd --editor-cmd",
            RUNS,
        ),
    ),
    row(
        "pytest py.test",
        valued(
            "pco",
            "krmnW",
            "--rootdir --confcutdir --basetemp --override-ini --config-file --junitxml --junit-xml --log-file",
            EITHER,
        ),
    ),
    row(
        "pandoc",
        valued(
            "FLod",
            "ftrwMV",
            "--filter --lua-filter --output --pdf-engine --extract-media --data-dir --defaults --log",
            EITHER,
        ),
    ),
    row(
        "tex latex pdftex pdflatex xelatex lualatex xetex luatex",
        options(
            "",
            "-shell-escape -enable-write18 -output-directory -jobname -luaonly -fmt",
            EITHER,
        ),
    ),
    row(
        "cpio pax",
        options("ioI", "--extract --rsh-command", EITHER),
    ),
    row("cmake", options("PECS", "--install --build", EITHER)),
    row(
        "ninja just task rake ant scons",
        options(
            "fCd",
            "--justfile --shell --set --taskfile --rakefile --directory --working-directory \
            --file",
            RUNS,
        ),
    ),
    row(
        "just",
        options(
            "c",
            "--command --shell-arg --shell-command --chooser --edit",
            RUNS,
        ),
    ),
    row(
        "gradle gradlew mvn mvnw",
        options(
            "IbcfPsDp",
            "--init-script --build-file --settings-file --file --settings --project-dir",
            RUNS,
        ),
    ),
    // Languages.
    row(
        "python python2 python3 pypy pypy3",
        valued("c", "mWX", "", RUNS_CODE),
    ),
    row(
        "python python3 perl ruby node php lua deno bun",
        Words("-", "runs what it reads"),
    ),
    row("perl", valued("eEidMmIx", "lF0CD", "", RUNS_CODE)),
    row("ruby", valued("erIiSxC", "EFKT", "--require", RUNS_CODE)),
    row(
        "node nodejs",
        options(
            "eprC",
            "--eval --print --require --import --loader --experimental-loader --env-file \
            --conditions --inspect --inspect-brk --inspect-port",
            RUNS_CODE,
        ),
    ),
    row(
        "deno",
        Words("eval repl install", "runs or installs other code"),
    ),
    row(
        "bun",
        options("eprc", "--eval --print --preload --config", RUNS_CODE),
    ),
    row("bun", Words("x create repl exec", "runs other programs")),
    row(
        "php",
        options(
            "rBREFdcz",
            "--run --process-code --process-file --define --php-ini",
            RUNS_CODE,
        ),
    ),
    row("lua luajit", options("el", "", RUNS_CODE)),
    row(
        "osascript Rscript julia groovy scala",
        options("eEL", "--eval --print --load", RUNS_CODE),
    ),
    row(
        "java",
        Text(
            "-agent -javaagent -XX:OnError -XX:OnOutOfMemoryError -Xrun @",
            RUNS,
        ),
    ),
    // Builders and package managers.
    row("npx bunx uvx pnpx", Judged(scripts::runner_harms)),
    row(
        "npm pnpm yarn",
        options(
            "CcfF",
            "--prefix --dir --cwd --script-shell --node-options --userconfig --globalconfig \
            --shell --call --use-yarnrc --git --editor --viewer --browser",
            RUNS,
        ),
    ),
    row(
        "npm pnpm yarn",
        Words(
            "exec x dlx explore config set edit init create",
            "runs other programs or changes what will be run",
        ),
    ),
    row(
        "pip pip3 pipx uv poetry pipenv conda",
        Words(
            "run exec config shell",
            "runs other programs or changes what will be run",
        ),
    ),
    row(
        "bundle gem",
        Words(
            "exec config console",
            "runs other programs or changes what will be run",
        ),
    ),
    row(
        "cargo",
        options(
            "CZ",
            "--config --manifest-path --target-dir --artifact-dir --out-dir --root --path",
            EITHER,
        ),
    ),
    row(
        "cargo",
        Words(
            "install login config",
            "installs programs or changes what will be run",
        ),
    ),
    row("cargo rustup", Text("+", "use another toolchain")),
    row(
        "rustup",
        Words(
            "run override set",
            "runs other programs or changes what will be run",
        ),
    ),
    row(
        "go",
        options(
            "",
            "-exec -toolexec -overlay -modfile -o -C -vettool -pkgdir -outputdir -coverprofile \
            -cpuprofile -memprofile -blockprofile -mutexprofile -trace -ldflags -gcflags",
            EITHER,
        ),
    ),
    row(
        "go",
        Words(
            "env generate install tool",
            "runs other programs or changes what will be run",
        ),
    ),
    row(
        "gcc cc g++ c++ clang clang++ rustc tsc ld as",
        options(
            "oBC",
            "-wrapper -specs --specs --outFile --outDir --project --codegen",
            EITHER,
        ),
    ),
    row(
        "gcc cc g++ c++ clang clang++",
        Text("@ -fplugin -fuse-ld -Wl, -Xlinker -save-temps -MF", EITHER),
    ),
    row(
        "openssl",
        options(
            "",
            "-out -keyout -engine -config -provider-path -writerand -CAserial",
            EITHER,
        ),
    ),
    row("openssl", Words("engine", "loads code from a file")),
    row(
        "gpg gpg2",
        options(
            "o",
            "--output --exec-path --photo-viewer --options --homedir --agent-program",
            EITHER,
        ),
    ),
    // Machines in machines.
    row(
        "docker podman nerdctl",
        Words(
            "run exec cp build buildx compose create start load save plugin",
            "runs other programs or writes files",
        ),
    ),
    row(
        "docker podman kubectl helm",
        options(
            "cH",
            "--context --config --host --kubeconfig --post-renderer",
            "work on another machine or run another program",
        ),
    ),
    row(
        "kubectl",
        Words(
            "exec cp run edit plugin debug config attach port-forward proxy",
            "runs other programs or writes files",
        ),
    ),
    row(
        "gh",
        Words(
            "alias extension ext config codespace auth secret ssh-key",
            "runs other programs or changes what will be run",
        ),
    ),
    row("ip", Words("netns vrf", "can run other programs")),
    row(
        "systemctl journalctl",
        Words(
            "edit set-environment import-environment link enable",
            "changes what will be run",
        ),
    ),
    row(
        "pip pip3",
        options(
            "",
            "--target --prefix --root --log --python --editable",
            EITHER,
        ),
    ),
];
