//! What a call that has ended means. The one place that decides it.

use super::files::Made;
use super::{Client, Done};
use crate::argv::ContainerId;
use crate::bounds::Bounds;
use crate::error::{CallError, CallErrorKind, Called};
use crate::phrases;
use crate::process::Ended;
use crate::verb::{Exit, Output, Subject, Verb};
use crate::verbs::{ListContainers, ListImages, ListVolumes, Version};

impl Client {
    /// The answer of a call, or what is wrong. Asks the engine whether the
    /// verb's subject exists before it reads docker's English.
    pub(super) async fn conclude<V: Verb>(
        &self,
        bounds: &Bounds,
        verb: &V,
        done: Done,
        call: &Called,
    ) -> Result<V::Answer, CallError> {
        let (output, ended) = done.output();
        let failed = |kind| {
            let error = call.failed(kind).with_output(&output);
            match verb.progress_is_on_both() {
                true => error.with_progress(&output),
                false => error,
            }
        };
        if let Some(ended) = ended {
            return Err(failed(kind_of(ended)));
        }
        if verb.answered(&output) {
            return verb
                .parse(&output)
                .map_err(|error| call.unexpected(error, &output));
        }
        let said = match output.exit {
            Exit::Signal(_) => CallErrorKind::Signalled,
            Exit::Code(_) => verb.said(&output),
        };
        if is_open(said)
            && let Some((answer, gone)) = verb.without(&output)
            && self.none_exists(bounds, &gone).await
        {
            return Ok(answer);
        }
        let kind = match verb.subject() {
            Some(subject) if is_open(said) => match self.exists(bounds, &subject, &output).await {
                Some(false) => match verb.when_absent() {
                    Some(answer) => return Ok(answer),
                    None => absent(&subject),
                },
                Some(true) | None => said,
            },
            _ => said,
        };
        Err(failed(kind))
    }

    /// Why a call about a container failed that was not one of ours to
    /// watch. Asks whether it exists, unless docker's words say so.
    pub(crate) async fn why(&self, container: &ContainerId, output: &Output) -> CallErrorKind {
        let said = said(output);
        let known = !is_open(said);
        self.unless_absent(container, said, known, output).await
    }

    /// The same for a copy.
    pub(crate) async fn why_no_copy(
        &self,
        container: &ContainerId,
        output: &Output,
    ) -> CallErrorKind {
        let (said, known) = match output.exit {
            Exit::Signal(_) => (CallErrorKind::Signalled, false),
            Exit::Code(_) => phrases::classify_copy(output),
        };
        let known = known || !(is_open(said) || is_of_a_path(said));
        self.unless_absent(container, said, known, output).await
    }

    async fn unless_absent(
        &self,
        container: &ContainerId,
        said: CallErrorKind,
        known: bool,
        output: &Output,
    ) -> CallErrorKind {
        if known {
            return said;
        }
        let subject = Subject::Container(container.into());
        match self.exists(&Bounds::patient(), &subject, output).await {
            Some(false) => CallErrorKind::NoSuchContainer,
            Some(true) | None => said,
        }
    }

    /// Whether a subject exists, if the engine tells.
    async fn exists(&self, bounds: &Bounds, subject: &Subject, output: &Output) -> Option<bool> {
        match subject {
            Subject::Container(container) => {
                let list = ListContainers::default().only(container.clone());
                Some(!self.look(bounds, &list).await?.is_empty())
            }
            Subject::Volume(name) => {
                let list = ListVolumes::default().only(name.clone());
                Some(!self.look(bounds, &list).await?.is_empty())
            }
            Subject::ImageId(id) => {
                let list = ListImages::default().only(id.clone());
                Some(!self.look(bounds, &list).await?.is_empty())
            }
            // There is no exact list of a name's image. But `inspect` printed that
            // it found none, and that is not for want of an engine.
            Subject::Image(_) => {
                let none = output.exit == Exit::Code(1) && output.stdout.trim_ascii() == b"[]";
                let answer = if none {
                    self.look(bounds, &Version).await
                } else {
                    None
                };
                answer.and_then(|version| version.server).map(|_| false)
            }
        }
    }

    /// Whether the engine tells that none of these containers exists.
    async fn none_exists(&self, bounds: &Bounds, containers: &[ContainerId]) -> bool {
        let list = ListContainers::default().among(containers.iter().cloned());
        let found = self.look(bounds, &list).await;
        found.is_some_and(|found| found.is_empty())
    }

    /// A query whose failure is no news.
    async fn look<V: Verb>(&self, bounds: &Bounds, verb: &V) -> Option<V::Answer> {
        let call = Called::new(V::NAME, &verb.argv());
        let (output, ended) = self.ask(bounds, verb, &call).await.ok()?.output();
        let answered = ended.is_none() && verb.answered(&output);
        answered.then(|| verb.parse(&output).ok()).flatten()
    }
}

impl Done {
    /// What the call left, and why we ended it, if we did.
    fn output(self) -> (Output, Option<Ended>) {
        let Made { container, image } = self.made;
        let output = Output {
            exit: self.finished.exit,
            stdout: self.finished.stdout,
            stderr: self.finished.stderr,
            made: container,
            built: image,
        };
        (output, self.finished.ended)
    }
}

fn said(output: &Output) -> CallErrorKind {
    match output.exit {
        Exit::Signal(_) => CallErrorKind::Signalled,
        Exit::Code(_) => phrases::classify(output),
    }
}

fn is_of_a_path(said: CallErrorKind) -> bool {
    matches!(
        said,
        CallErrorKind::NoSuchPath | CallErrorKind::NotADirectory
    )
}

/// Whether the absence of the subject would explain a failure better.
fn is_open(said: CallErrorKind) -> bool {
    matches!(
        said,
        CallErrorKind::Other
            | CallErrorKind::NoSuchContainer
            | CallErrorKind::NoSuchVolume
            | CallErrorKind::NoSuchImage
    )
}

fn absent(subject: &Subject) -> CallErrorKind {
    match subject {
        Subject::Container(_) => CallErrorKind::NoSuchContainer,
        Subject::Volume(_) => CallErrorKind::NoSuchVolume,
        Subject::Image(_) | Subject::ImageId(_) => CallErrorKind::NoSuchImage,
    }
}

fn kind_of(ended: Ended) -> CallErrorKind {
    match ended {
        Ended::TimedOut => CallErrorKind::TimedOut,
        Ended::Stopped => CallErrorKind::Cancelled,
        Ended::OutputTooLarge => CallErrorKind::OutputTooLarge,
        // The only thing that it asks for is a login.
        Ended::Prompted => CallErrorKind::RegistryDenied,
    }
}
