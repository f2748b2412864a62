//! Languages, builders, package managers and what runs machines in machines.

use super::Danger::{Beyond, Judged, Text, Words};
use super::{Danger, EITHER, RUNS, RUNS_CODE, Row, WRITES, options, row, valued};
use crate::policy::harm::{languages, scripts, subcommands};

pub const TABLE: &[Row] = &[
    // Languages.
    row(
        "python python2 python3 pypy pypy3",
        valued("ci", "mWX", "", RUNS_CODE),
    ),
    row(
        "python python2 python3 pypy pypy3",
        Judged(languages::python_harms),
    ),
    row(
        "perl ruby node nodejs php lua luajit julia Rscript R octave guile racket sbcl swift ocaml scala \
            groovy elixir erl tclsh deno bun raku",
        Judged(languages::input_harms),
    ),
    row(
        "python python3 perl ruby node php lua deno bun",
        Words("-", "runs what it reads"),
    ),
    row("perl", valued("eEidMmIx", "F", "", RUNS_CODE)),
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
        "node nodejs",
        Text("--test-reporter --test-global-setup", RUNS_CODE),
    ),
    row(
        "deno",
        Danger::Subcommands("eval repl install task", "runs or installs other code"),
    ),
    row(
        "deno",
        options(
            "A",
            "--allow-all --allow-run --allow-ffi --allow-write --config --import-map --preload --require",
            RUNS_CODE,
        ),
    ),
    row("deno", Text("://", "run code from elsewhere")),
    row(
        "bun",
        options("eprc", "--eval --print --preload --config", RUNS_CODE),
    ),
    row(
        "bun",
        Danger::Subcommands("x create repl exec", "runs other programs"),
    ),
    row(
        "php",
        options(
            "rBREFdczaS",
            "--run --process-code --process-file --define --php-ini",
            RUNS_CODE,
        ),
    ),
    row("lua luajit", options("eli", "", RUNS_CODE)),
    row(
        "osascript Rscript julia groovy scala R octave guile racket sbcl swift ghc clojure clj elixir erl \
            crystal nim raku kotlinc",
        options("ceELfs", "--eval --print --load -eval -script", RUNS_CODE),
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
    row("npm pnpm yarn", options("", "--pack-destination", WRITES)),
    row(
        "npm pnpm yarn",
        Danger::Subcommands(
            "exec x dlx explore config set edit init create pkg node plugin patch global publish unpublish \
                login adduser logout token access owner deprecate dist-tag hook profile team org link",
            "runs other programs, publishes, or changes what will be run",
        ),
    ),
    row(
        "pip pip3 pipx uv poetry pipenv conda",
        Danger::Subcommands(
            "run exec config shell tool publish",
            "runs other programs or changes what will be run",
        ),
    ),
    row(
        "bundle gem",
        Danger::Subcommands(
            "exec config console push",
            "runs other programs or changes what will be run",
        ),
    ),
    row("cargo", Judged(languages::cargo_harms)),
    row("rustup", Beyond(&subcommands::RUSTUP)),
    row("rustup", Text("+", "use another toolchain")),
    row("go", Judged(languages::go_harms)),
    row(
        "go",
        Danger::Subcommands(
            "env generate install tool",
            "runs other programs or changes what will be run",
        ),
    ),
    row(
        "gcc cc g++ c++ clang clang++ rustc tsc ld as",
        options(
            "BCZ",
            "-wrapper -specs --specs --outFile --outDir --project --codegen",
            EITHER,
        ),
    ),
    row(
        "gcc cc g++ c++ clang clang++",
        Text(
            "@ -fplugin -fuse-ld -Wl, -Xlinker -Xclang -load -save-temps -MF",
            EITHER,
        ),
    ),
    row(
        "openssl",
        options(
            "",
            "-out -keyout -engine -config -provider-path -writerand -CAserial",
            EITHER,
        ),
    ),
    row(
        "openssl",
        Danger::Subcommands(
            "engine s_client s_server s_time",
            "loads code or talks to other machines",
        ),
    ),
    row(
        "gpg gpg2",
        options(
            "o",
            "--output --exec-path --photo-viewer --options --homedir --agent-program \
            --export-secret-keys --export-secret-subkeys",
            EITHER,
        ),
    ),
    // Machines in machines.
    row("docker podman nerdctl", Beyond(&subcommands::DOCKER)),
    row("docker-compose", Beyond(&subcommands::DOCKER_COMPOSE)),
    row(
        "docker-compose",
        options("f", "--file --env-file --project-directory", RUNS),
    ),
    row(
        "docker podman kubectl helm",
        options(
            "cH",
            "--context --config --host --kubeconfig --post-renderer",
            "work on another machine or run another program",
        ),
    ),
    row("kubectl", Beyond(&subcommands::KUBECTL)),
    row("helm", Danger::Subcommands("plugin", RUNS)),
    row("gh", Beyond(&subcommands::GH)),
    row("gh", Judged(scripts::gh_harms)),
    row("terraform tofu", options("", "-plugin-dir -chdir", RUNS)),
    row("ip", Words("netns vrf", "can run other programs")),
    row("systemctl", Beyond(&subcommands::SYSTEMCTL)),
    row(
        "systemctl",
        options("HM", "--host --machine --root --image", RUNS),
    ),
    row(
        "journalctl",
        Text(
            "--vacuum --rotate --flush --relinquish --update",
            "change the log",
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
