//! The kernel's random numbers.

use std::io;

/// Bytes that can't be guessed.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut random = [0; N];
    let mut filled = 0;
    while filled < N {
        let flags = rustix::rand::GetRandomFlags::empty();
        filled += rustix::rand::getrandom(&mut random[filled..], flags)?;
    }
    Ok(random)
}
