//! One run of a spider: puts actors, backends and threads together and waits for the end.

pub(crate) mod spec;

pub(crate) use spec::{JobSpec, Progress, Report, StartError, StdoutSource, StopSwitch};

/// Runs a job to its end. Must be called within [`crate::actor::run_system`].
///
/// # Errors
/// When the job cannot start.
pub(crate) async fn run(spec: JobSpec) -> Result<Report, StartError> {
    let _ = spec;
    Err(StartError::Io("not wired yet".to_owned()))
}
