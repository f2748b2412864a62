//! Runs the tasks of a file through the control socket: commands in sessions, prompts at slots.

use crate::control::client::{Client, Dial};
use crate::control::identity::Wanted;
use crate::control::requests::{
    Cancel, Close, CloseParams, Method, OneTask, Output, OutputParams, Spawn, Submit, SubmitParams,
    Task, TaskParams,
};
use crate::core::model::{Fault, RpcError, RunParams, SpawnParams, TaskState};
use crate::core::queue::plan::{Effect, Job, Report, Run, Work};
use crate::core::text::excerpt;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The output that is kept of one task; of longer output, the beginning and the end.
const MAX_OUTPUT: usize = 1 << 20;
/// The maximum of queued progress reports. The last line of a program may be dropped, because another follows it.
const MAX_NEWS: usize = 256;
/// Each request for output is answered within this time, so that a broken connection is noticed.
const LOOK_MS: u64 = 30_000;
/// The interval between two checks of a task that waits for a person.
const QUESTION_LOOK: Duration = Duration::from_secs(1);

/// Progress of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    Started {
        attempt: u32,
    },
    /// The last line that the command wrote.
    Line(String),
    /// Its slot asks something that a person has to answer.
    NeedsPerson(String),
    Ended,
}

/// The daemon and the environment for the tasks.
#[derive(Clone)]
pub struct Settings {
    pub dial: Dial,
    /// Environment variables for commands, besides those of the task itself.
    pub environment: BTreeMap<String, String>,
    /// Cancelled to stop: nothing more is started, and running tasks are ended.
    pub stop: CancellationToken,
}

/// Runs all tasks, and reports their progress. When this returns, none of them runs any more.
pub async fn execute(
    mut run: Run,
    settings: Settings,
    mut tell: impl FnMut(&Run, usize, News),
) -> Run {
    let (news, mut told) = mpsc::channel(MAX_NEWS);
    let mut stage = ExecStage {
        settings,
        owner: format!(
            "orchestrator:tasks-{}",
            &uuid::Uuid::new_v4().simple().to_string()[..8]
        ),
        news,
        back: CancellationToken::new(),
        workers: JoinSet::new(),
    };
    let mut effects = run.advance();
    let mut interrupted = false;
    loop {
        for effect in effects.drain(..) {
            match effect {
                Effect::Start(place, attempt) => {
                    stage.start(place, run.jobs()[place].clone());
                    tell(&run, place, News::Started { attempt });
                }
                Effect::Tell(place) => tell(&run, place, News::Ended),
                Effect::StopAll => stage.back.cancel(),
            }
        }
        if run.is_over() {
            return run;
        }
        tokio::select! {
            Some(ended) = stage.workers.join_next() => match ended {
                Ok((place, report)) => effects = run.ended(place, report),
                // A worker neither panics nor is aborted.
                Err(error) => effects = run.stop(&error.to_string()),
            },
            Some((place, news)) = told.recv() => tell(&run, place, news),
            () = stage.settings.stop.cancelled(), if !interrupted => {
                interrupted = true;
                effects = run.stop("interrupted");
            }
        }
    }
}

struct ExecStage {
    settings: Settings,
    owner: String,
    news: mpsc::Sender<(usize, News)>,
    back: CancellationToken,
    workers: JoinSet<(usize, Report)>,
}

impl ExecStage {
    fn start(&mut self, place: usize, job: Job) {
        let worker = ExecWorker {
            owner: format!("{}:{}", self.owner, job.name),
            job,
            place,
            dial: self.settings.dial.clone(),
            environment: self.settings.environment.clone(),
            news: self.news.clone(),
            back: self.back.clone(),
        };
        self.workers
            .spawn(async move { (place, worker.run().await) });
    }
}

/// One attempt at one task.
struct ExecWorker {
    job: Job,
    place: usize,
    /// The owner of the attempt's sessions only.
    owner: String,
    dial: Dial,
    environment: BTreeMap<String, String>,
    news: mpsc::Sender<(usize, News)>,
    back: CancellationToken,
}

/// The result of the work.
struct Went {
    exit_code: Option<i32>,
    error: Option<String>,
}

impl ExecWorker {
    async fn run(self) -> Report {
        let began = Instant::now();
        let mut output = String::new();
        let went = match &self.job.work {
            Work::Commands { lines, cwd, env } => {
                let went = self
                    .in_time(self.commands(lines, cwd, env, &mut output))
                    .await;
                // Closes what is left: a command that was cancelled, or one that was being started.
                let owner = Some(self.owner.clone());
                let left = self
                    .ask::<Close>(CloseParams {
                        owner,
                        ..CloseParams::default()
                    })
                    .await;
                match (went, left) {
                    (Ok(went), _) => Ok(went),
                    (Err(why), Ok(_)) => Err(why),
                    (Err(why), Err(error)) => {
                        Err(format!("{why}; its session could not be closed: {error}"))
                    }
                }
            }
            Work::Prompt { to, text } => self.prompt(to, text, &mut output).await,
        };
        let stopped = went.is_err() && self.back.is_cancelled();
        let went = went.unwrap_or_else(|why| Went {
            exit_code: None,
            error: Some(why),
        });
        Report {
            success: went.error.is_none(),
            exit_code: went.exit_code,
            duration: began.elapsed(),
            output,
            error: went.error,
            skipped: stopped,
        }
    }

    /// Runs the work until it is done, cancelled or timed out.
    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, RpcError>>,
    ) -> Result<T, String> {
        let late = async {
            match self.job.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            done = work => done.map_err(in_words),
            () = self.back.cancelled() => Err("stopped before its end".to_owned()),
            () = late => {
                let timeout = self.job.timeout.unwrap_or_default();
                Err(format!("not done within {}", humantime::format_duration(timeout)))
            }
        }
    }

    /// Runs one line after another, up to the first that fails.
    async fn commands(
        &self,
        lines: &[String],
        cwd: &Path,
        env: &BTreeMap<String, String>,
        output: &mut String,
    ) -> Result<Went, RpcError> {
        let mut client = (self.dial)().await?;
        for line in lines {
            let code = self.command(&mut client, line, cwd, env, output).await?;
            if code != Some(0) {
                let how = code.map_or("it ended with no exit code".to_owned(), |code| {
                    format!("exit code {code}")
                });
                let error = match lines.len() {
                    1 => how,
                    _ => format!("`{line}`: {how}"),
                };
                return Ok(Went {
                    exit_code: code,
                    error: Some(error),
                });
            }
        }
        Ok(Went {
            exit_code: Some(0),
            error: None,
        })
    }

    async fn command(
        &self,
        client: &mut Client,
        line: &str,
        cwd: &Path,
        env: &BTreeMap<String, String>,
        output: &mut String,
    ) -> Result<Option<i32>, RpcError> {
        let mut variables = self.environment.clone();
        variables.extend(env.clone());
        let params = SpawnParams {
            command: ["sh", "-c", line].map(str::to_owned).to_vec(),
            run: RunParams {
                owner: Some(self.owner.clone()),
                // If this process is killed, its sessions end with it.
                owner_pid: Some(std::process::id()),
                cwd: Some(cwd.to_owned()),
                env: variables,
                env_clear: true,
                ..RunParams::default()
            },
            ..SpawnParams::default()
        };
        let session = call::<Spawn>(client, params).await?.id;
        let code = self.follow(client, &session, output).await?;
        let params = CloseParams {
            slot: Some(session),
            ..CloseParams::default()
        };
        call::<Close>(client, params).await?;
        Ok(code)
    }

    /// Collects the output of a session until its end.
    async fn follow(
        &self,
        client: &mut Client,
        session: &str,
        output: &mut String,
    ) -> Result<Option<i32>, RpcError> {
        let mut from = 0;
        loop {
            let params = OutputParams {
                slot: session.to_owned(),
                from: Some(from),
                wait_ms: Some(LOOK_MS),
                ..OutputParams::default()
            };
            let part = call::<Output>(client, params).await?;
            from = part.end;
            output.push_str(&part.text);
            if output.len() > 2 * MAX_OUTPUT {
                *output = excerpt::ends(output, MAX_OUTPUT);
            }
            if let Some(line) = part.text.lines().rev().find(|line| !line.trim().is_empty()) {
                let _ = self
                    .news
                    .try_send((self.place, News::Line(line.to_owned())));
            }
            if !part.running && part.end >= part.total {
                return Ok(part
                    .exit_code
                    .or_else(|| part.signal.map(|signal| 128 + signal)));
            }
        }
    }

    async fn prompt(&self, to: &str, text: &str, output: &mut String) -> Result<Went, String> {
        // Not cancelled in between, because a submitted task must be known to be cancelled.
        let submitted = self.ask::<Submit>(SubmitParams {
            slot: to.to_owned(),
            text: text.to_owned(),
            ..SubmitParams::default()
        });
        let id = submitted.await.map_err(in_words)?.id;
        let ended = self.in_time(self.wait_for(&id)).await;
        match ended {
            Ok(task) => {
                output.push_str(task.answer.as_deref().unwrap_or_default());
                let cause = task.error.unwrap_or_else(|| "it failed".to_owned());
                let failed = (task.state != TaskState::Done).then_some(cause);
                Ok(Went {
                    exit_code: None,
                    error: failed,
                })
            }
            Err(why) => {
                // A task that has ended meanwhile needs no cancelling.
                let _ = self.ask::<Cancel>(OneTask { id }).await;
                Err(why)
            }
        }
    }

    async fn wait_for(&self, id: &str) -> Result<crate::core::model::TaskStatus, RpcError> {
        loop {
            let params = TaskParams {
                id: id.to_owned(),
                wait: true,
                timeout_ms: None,
            };
            let task = self.ask::<Task>(params).await?;
            if task.state.is_final() {
                return Ok(task);
            }
            let slot = task.slot.unwrap_or_default();
            let _ = self.news.try_send((self.place, News::NeedsPerson(slot)));
            tokio::time::sleep(QUESTION_LOOK).await;
        }
    }

    async fn ask<M: Method>(&self, params: M::Params) -> Result<M::Answer, RpcError> {
        let mut client = (self.dial)().await?;
        call::<M>(&mut client, params).await
    }
}

async fn call<M: Method>(client: &mut Client, params: M::Params) -> Result<M::Answer, RpcError> {
    client.call::<M>(params).await.map_err(RpcError::from)
}

fn in_words(error: RpcError) -> String {
    match (error.next, error.fault) {
        (Some(next), Fault::Usage | Fault::Refused) => format!("{} ({next})", error.message),
        _ => error.message,
    }
}

/// The caller's environment, without the variables of its terminal and its directory.
pub fn environment_of_caller() -> BTreeMap<String, String> {
    const OWN: &[&str] = &["_", "COLORTERM", "OLDPWD", "PWD", "SHLVL", "TERM"];
    let all = crate::launch::process_environment().into_iter();
    all.filter(|(name, _)| !OWN.contains(&name.as_str()) && !crate::launch::is_left_out(name))
        .collect()
}

/// A dial for the wanted daemon, which listens at this socket.
pub fn dial_at(socket: &Path, wanted: Wanted) -> Dial {
    let socket: Arc<Path> = socket.into();
    Arc::new(move || {
        let (socket, wanted) = (socket.clone(), wanted.clone());
        Box::pin(async move { Ok(Client::connect_to(&socket, &wanted).await?) })
    })
}
