//! What the fuzz targets share.

use arbitrary::{Error, Result, Unstructured};

/// A number in this range, both ends included.
///
/// Named by the fields of the programs that the targets run: `arbitrary(with = from::<1, 4, _>)`.
pub fn from<const LEAST: u64, const MOST: u64, N: TryFrom<u64>>(
    bytes: &mut Unstructured<'_>,
) -> Result<N> {
    bytes.int_in_range(LEAST..=MOST)?.try_into().map_err(|_| Error::IncorrectFormat)
}
