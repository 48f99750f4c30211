//! Compiles the proto files of the kubelet's APIs, without protoc. Each API has an output folder of
//! its own: the generated file is named after the package, and several APIs have the package `v1`.

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    for api in ["deviceplugin", "podresources"] {
        let folder = format!("proto/{api}");
        let file = format!("{folder}/api.proto");
        println!("cargo:rerun-if-changed={file}");
        let descriptors = protox::compile([&file], [&folder])?;
        let dir = out.join(api);
        std::fs::create_dir_all(&dir)?;
        tonic_prost_build::configure()
            .out_dir(&dir)
            .compile_fds(descriptors)?;
    }
    Ok(())
}
