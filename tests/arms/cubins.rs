//! Cubins are an option: without one a kernel comes from its PTX, and one that is damaged is an error that names it.

use tidelock::kernels::Argmax;
use tidelock::{AsView, AsViewMut, Device, REGISTRY, cubin};

use crate::support::{on, read};

#[test]
fn a_folder_of_cubins() {
    let Ok(device) = Device::cuda(0) else { return eprintln!("no GPU here, so no cubins") };
    let Device::Cuda(cuda) = &device else { unreachable!("the device was asked for") };
    let (major, minor) = cuda.stream().context().compute_capability().expect("the GPU has one");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let argmax = |device: &Device| {
        let (logits, mut tokens) = (on(device, &[1.0f32, 5.0, 3.0]), on(device, &[-7i64]));
        let logits = logits.view().matrix(1, 3).expect("it fits");
        let call = Argmax { output_token_ids: tokens.view_mut(), logits };
        call.launch(device).map(|()| read(&tokens))
    };
    let refused = |folder: &std::path::Path| {
        argmax(&device.clone().with_cubins(folder)).expect_err("it cannot be loaded").to_string()
    };

    let missing = refused(&folder.path().join("missing"));
    assert!(missing.contains("expected a folder of cubins, got "), "{missing}");
    assert_eq!(argmax(&device.clone().with_cubins(folder.path())).expect("its PTX loads"), [1]);

    let damaged = tempfile::tempdir().expect("a temporary folder can be made");
    let kernel = REGISTRY.iter().find(|kernel| kernel.name == "argmax").expect("it is registered");
    for variant in kernel.variants {
        let name = cubin::file_name(variant.sha256, (major * 10 + minor) as u32);
        std::fs::write(damaged.path().join(name), "no cubin").expect("it can be written");
    }
    let refused = refused(damaged.path());
    assert!(refused.contains("is damaged or was renamed"), "{refused}");
    assert_eq!(argmax(&device).expect("its PTX loads"), [1], "another device of the same context is not concerned");
}
