//! The decompressors of the single codings under one small interface.
//!
//! Each takes some input, fills one piece of output and says how to go on; none keeps output of its own beyond its
//! window.

use brotli::{BrotliDecompressStream, BrotliResult, BrotliState, HeapAlloc, HuffmanCode};
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, InBuffer, Operation, OutBuffer};

use super::{Coding, DecodeError};

/// Largest window a zstd frame may ask for, as a power of two: 8 MiB (RFC 9659).
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// What one call of a decompressor did.
pub(super) struct Step {
    pub(super) consumed: usize,
    pub(super) produced: usize,
    pub(super) next: Next,
}

pub(super) enum Next {
    /// Call again, with the input that is left.
    Continue,
    /// All input is used and all output handed out.
    MoreInput,
    /// The stream is over; more input is not part of it.
    Ended,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Running,
    Ended,
}

/// Zlib or raw deflate.
pub(super) struct Inflate {
    stream: Decompress,
    progress: Progress,
}

impl Inflate {
    pub(super) fn is_ended(&self) -> bool {
        self.progress == Progress::Ended
    }

    pub(super) fn new(zlib_header: bool) -> Self {
        Self { stream: Decompress::new(zlib_header), progress: Progress::Running }
    }

    pub(super) fn step(&mut self, input: &[u8], piece: &mut [u8]) -> Result<Step, DecodeError> {
        if self.progress == Progress::Ended {
            return Ok(Step { consumed: 0, produced: 0, next: Next::Ended });
        }
        let (step, ended) = inflate(&mut self.stream, input, piece, Coding::Deflate)?;
        if ended {
            self.progress = Progress::Ended;
        }
        Ok(step)
    }
}

/// One call of the deflate decoder; says whether the stream ended.
pub(super) fn inflate(
    stream: &mut Decompress,
    input: &[u8],
    piece: &mut [u8],
    coding: Coding,
) -> Result<(Step, bool), DecodeError> {
    let (in_before, out_before) = (stream.total_in(), stream.total_out());
    let status =
        stream.decompress(input, piece, FlushDecompress::None).map_err(|_| DecodeError::Corrupt { coding })?;
    let moved = |after: u64, before: u64| usize::try_from(after - before).unwrap_or(0);
    let (consumed, produced) = (moved(stream.total_in(), in_before), moved(stream.total_out(), out_before));
    let ended = status == Status::StreamEnd;
    let is_idle = consumed == 0 && produced == 0;
    let is_drained = consumed == input.len() && produced < piece.len();
    let next = if !ended && (is_idle || is_drained) { Next::MoreInput } else { Next::Continue };
    Ok((Step { consumed, produced, next }, ended))
}

/// Brotli (RFC 7932).
pub(super) struct Brotli {
    state: BrotliState<HeapAlloc<u8>, HeapAlloc<u32>, HeapAlloc<HuffmanCode>>,
    total_out: usize,
    progress: Progress,
}

impl Brotli {
    pub(super) fn is_ended(&self) -> bool {
        self.progress == Progress::Ended
    }

    pub(super) fn new() -> Self {
        let state = BrotliState::new(HeapAlloc::new(0), HeapAlloc::new(0), HeapAlloc::new(HuffmanCode::default()));
        Self { state, total_out: 0, progress: Progress::Running }
    }

    pub(super) fn step(&mut self, input: &[u8], piece: &mut [u8]) -> Result<Step, DecodeError> {
        if self.progress == Progress::Ended {
            return Ok(Step { consumed: 0, produced: 0, next: Next::Ended });
        }
        let (mut input_left, mut consumed) = (input.len(), 0);
        let (mut output_left, mut produced) = (piece.len(), 0);
        let result = BrotliDecompressStream(
            &mut input_left,
            &mut consumed,
            input,
            &mut output_left,
            &mut produced,
            piece,
            &mut self.total_out,
            &mut self.state,
        );
        let next = match result {
            BrotliResult::ResultSuccess => {
                self.progress = Progress::Ended;
                Next::Continue
            }
            BrotliResult::NeedsMoreInput => Next::MoreInput,
            BrotliResult::NeedsMoreOutput => Next::Continue,
            BrotliResult::ResultFailure => return Err(DecodeError::Corrupt { coding: Coding::Brotli }),
        };
        Ok(Step { consumed, produced, next })
    }
}

/// Zstandard frames one after another (RFC 8878).
pub(super) struct Zstd {
    stream: zstd::stream::raw::Decoder<'static>,
    progress: Progress,
    /// Whole frames so far.
    frames: u64,
    /// Bytes taken and given out since the last whole frame.
    taken: usize,
    given: usize,
}

/// Shortest beginning of a frame that the decoder can judge.
const ZSTD_FRAME_START: usize = 5;

impl Zstd {
    pub(super) fn new() -> Result<Self, DecodeError> {
        let corrupt = |_| DecodeError::Corrupt { coding: Coding::Zstd };
        let mut stream = zstd::stream::raw::Decoder::new().map_err(corrupt)?;
        stream.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX)).map_err(corrupt)?;
        Ok(Self { stream, progress: Progress::Running, frames: 0, taken: 0, given: 0 })
    }

    /// Ended between two frames, or with bytes behind a frame that are too few to be another one.
    pub(super) fn is_ended(&self) -> bool {
        self.progress == Progress::Ended || (self.is_behind_frame() && self.taken < ZSTD_FRAME_START)
    }

    pub(super) fn step(&mut self, input: &[u8], piece: &mut [u8]) -> Result<Step, DecodeError> {
        if self.progress == Progress::Ended && input.is_empty() {
            return Ok(Step { consumed: 0, produced: 0, next: Next::MoreInput });
        }
        let room = piece.len();
        let mut source = InBuffer::around(input);
        let mut target = OutBuffer::around(piece);
        let hint = match self.stream.run(&mut source, &mut target) {
            Ok(hint) => hint,
            // Behind a whole frame this is padding or garbage, no broken page.
            Err(_) if self.is_behind_frame() => {
                self.progress = Progress::Ended;
                return Ok(Step { consumed: 0, produced: 0, next: Next::Ended });
            }
            Err(_) => return Err(DecodeError::Corrupt { coding: Coding::Zstd }),
        };
        let (consumed, produced) = (source.pos(), target.pos());
        if hint == 0 {
            self.progress = Progress::Ended;
            self.frames += 1;
            (self.taken, self.given) = (0, 0);
        } else {
            self.progress = Progress::Running;
            self.taken = self.taken.saturating_add(consumed);
            self.given = self.given.saturating_add(produced);
        }
        let is_drained = consumed == input.len() && produced < room;
        let next = if is_drained { Next::MoreInput } else { Next::Continue };
        Ok(Step { consumed, produced, next })
    }

    fn is_behind_frame(&self) -> bool {
        self.frames > 0 && self.given == 0
    }
}
