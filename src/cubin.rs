//! Cubins: machine code that was made ahead of time, so that a new process need not wait for the driver to compile PTX.
//!
//! A folder of cubins is an option. A file there is named by the PTX it was made of and by its target, and ends in a checksum
//! over both and its bytes. So a cubin of an older PTX is never taken, and one that is damaged or was renamed is an error.
//! What is in the folder runs on the GPU: trust it as you trust the program.

use std::io::ErrorKind;
use std::path::Path;

/// The environment variable that names a folder of cubins.
pub const VARIABLE: &str = "TIDELOCK_CUBINS";

/// The file name of the cubin of a PTX with this SHA-256, for `capability` (major * 10 + minor).
pub fn file_name(ptx_sha256: &str, capability: u32) -> String {
    format!("{ptx_sha256}.sm_{capability}.cubin")
}

/// `cubin` as it lies in its file: followed by its checksum.
pub fn seal(mut cubin: Vec<u8>, ptx_sha256: &str, capability: u32) -> Vec<u8> {
    let checksum = checksum(&cubin, ptx_sha256, capability);
    cubin.extend_from_slice(&checksum);
    cubin
}

/// The cubin for a PTX and `capability` in `folder`, or `None` where there is none and the PTX is to be compiled.
///
/// # Errors
/// Where the folder is missing, or the file cannot be read or is not what it was when it was made.
pub fn read(folder: &Path, ptx_sha256: &str, capability: u32) -> Result<Option<Vec<u8>>, String> {
    let path = folder.join(file_name(ptx_sha256, capability));
    let mut bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound && folder.is_dir() => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(format!("expected a folder of cubins, got {}, which is none", folder.display()));
        }
        Err(error) => return Err(format!("the cubin {} cannot be read: {error}", path.display())),
    };
    let expected = bytes.split_off(bytes.len().saturating_sub(4));
    if expected == checksum(&bytes, ptx_sha256, capability) {
        Ok(Some(bytes))
    } else {
        let path = path.display();
        Err(format!(
            "the cubin {path} is damaged or was renamed; remove it, or make it again with `tidelock compile --cubins`"
        ))
    }
}

fn checksum(cubin: &[u8], ptx_sha256: &str, capability: u32) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(file_name(ptx_sha256, capability).as_bytes());
    hasher.update(cubin);
    hasher.finalize().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cubin_is_taken_only_as_it_was_made() {
        let folder = std::env::temp_dir().join(format!("tidelock-cubins-{}", std::process::id()));
        let wrong = read(&folder, "ab", 90).expect_err("it is not there");
        assert!(wrong.starts_with("expected a folder of cubins, got "), "{wrong}");
        std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
        let path = |capability| folder.join(file_name("ab", capability));
        assert_eq!(read(&folder, "ab", 90), Ok(None));
        let sealed = seal(vec![1, 2, 3], "ab", 90);
        std::fs::write(path(90), &sealed).expect("it can be written");
        assert_eq!(read(&folder, "ab", 90), Ok(Some(vec![1, 2, 3])));
        std::fs::write(path(80), &sealed).expect("it can be written");
        for damaged in [&sealed[..6], &[9, 2, 3, sealed[3], sealed[4], sealed[5], sealed[6]][..], &[]] {
            std::fs::write(path(90), damaged).expect("it can be written");
            let error = [read(&folder, "ab", 90), read(&folder, "ab", 80)].map(|read| read.expect_err("it is damaged"));
            assert!(error.iter().all(|error| error.contains("is damaged or was renamed")), "{error:?}");
        }
        std::fs::remove_dir_all(&folder).expect("it can be removed");
    }
}
