//! `frontier pause`, `resume`, `stop`, `forget`: a job at a Redis server as a whole, with all who work at it.

use std::io::Write;
use std::time::Duration;

use clap::Args;

use super::place::PlaceArgs;
use super::server::{Job, error};
use crate::cli::exit::CliError;
use crate::cli::out;
use crate::cli::text::grouped;
use crate::scheduler::redis::FleetState;

/// A worker without a sign of life for so long is gone.
const GONE: Duration = Duration::from_secs(30);

/// Pauses a job of a Redis server: no worker gets new requests until it is resumed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dragline frontier pause redis://127.0.0.1/ --job 7     what is under way is finished")]
pub(super) struct PauseArgs {
    #[command(flatten)]
    place: PlaceArgs,
}

/// Lets a job of a Redis server run again that was paused or stopped.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dragline frontier resume redis://127.0.0.1/ --job 7")]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    place: PlaceArgs,
}

/// Stops a job of a Redis server: its workers finish what is under way, and end. What is queued stays for the next ones.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dragline frontier stop redis://127.0.0.1/ --job 7")]
pub(super) struct StopArgs {
    #[command(flatten)]
    place: PlaceArgs,
}

/// Deletes everything a Redis server holds of a job: queue, seen set, failed requests, counts.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline frontier forget redis://127.0.0.1/ --job 7            refused while workers are alive
  dragline frontier forget redis://127.0.0.1/ --job 7 --force    they end with an error")]
pub(super) struct ForgetArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Also while workers are alive
    #[arg(long)]
    force: bool,
}

/// Runs `pause`.
pub(super) fn pause(args: &PauseArgs, to: &mut dyn Write) -> Result<(), CliError> {
    change(&args.place, FleetState::Paused, to)
}

/// Runs `resume`.
pub(super) fn resume(args: &ResumeArgs, to: &mut dyn Write) -> Result<(), CliError> {
    change(&args.place, FleetState::Running, to)
}

/// Runs `stop`.
pub(super) fn stop(args: &StopArgs, to: &mut dyn Write) -> Result<(), CliError> {
    change(&args.place, FleetState::Stopping, to)
}

/// Runs `forget`.
pub(super) fn forget(args: &ForgetArgs, to: &mut dyn Write) -> Result<(), CliError> {
    let Job { mut admin, id, place } = args.place.find()?.admin()?;
    let workers = admin.survey().map_err(error)?.workers;
    let alive = workers.iter().filter(|worker| worker.silent_for < GONE).count();
    if alive > 0 && !args.force {
        return Err(CliError::usage(format!(
            "job {id} at {place} has {alive} workers alive: `frontier stop` it first and wait for them, or add --force"
        )));
    }
    let keys = admin.forget().map_err(error)?;
    out(to, &format!("job {id} at {place}: forgotten, {} keys deleted\n", grouped(keys)))
}

fn change(place: &PlaceArgs, state: FleetState, to: &mut dyn Write) -> Result<(), CliError> {
    let Job { mut admin, id, place } = place.find()?.admin()?;
    // A job that is finished stays so: its workers would wait for nobody.
    if admin.state().map_err(error)? == FleetState::Finished {
        return out(to, &format!("job {id} at {place}: finished; nothing to change\n"));
    }
    let before = admin.set_state(state).map_err(error)?;
    let was = if before == state { "as before".to_owned() } else { format!("was {}", before.name()) };
    out(to, &format!("job {id} at {place}: {}, {was}\n", state.name()))
}
