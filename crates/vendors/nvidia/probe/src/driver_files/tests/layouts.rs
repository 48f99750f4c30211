//! Layouts of driver files in distributions and driver containers.

use super::*;

const LIBRARIES: [&str; 4] = [
    "libGLX_nvidia.so.580.95.05",
    "libcuda.so.580.95.05",
    "libnvidia-allocator.so.580.95.05",
    "libnvidia-ml.so.580.95.05",
];

#[test]
fn debian_with_alternatives() {
    let host = Host::new();
    let current = "usr/lib/x86_64-linux-gnu/nvidia/current";
    host.libraries(62, current, &LIBRARIES)
        .libraries(
            62,
            &format!("{current}/vdpau"),
            &["libvdpau_nvidia.so.580.95.05"],
        )
        .libraries(
            62,
            "usr/lib/x86_64-linux-gnu",
            &["libnvidia-egl-gbm.so.1.1.2", "libc.so.6"],
        )
        .libraries(
            62,
            "usr/lib/nvidia/current",
            &["libglxserver_nvidia.so.580.95.05"],
        )
        .libraries(62, "usr/lib/xorg/modules/drivers", &["nvidia_drv.so"])
        .programs("usr/lib/nvidia/current", &["nvidia-smi"])
        .programs("usr/bin", &["nvidia-ctk", "nvidia-persistenced"])
        .file("usr/lib/firmware/nvidia/580.95.05/gsp_ga10x.bin", "x")
        .file("usr/lib/firmware/nvidia/575.1/gsp_ga10x.bin", "x")
        .file("usr/share/nvidia/nvidia_icd.json", "{}")
        .file("usr/share/glvnd/egl_vendor.d/10_nvidia.json", "{}")
        .special("run/nvidia-persistenced/socket", FileType::Socket)
        .links(&[
            ("lib", "usr/lib"),
            ("bin", "usr/bin"),
            ("var/run", "/run"),
            (&format!("{current}/libcuda.so.1"), "libcuda.so.580.95.05"),
            (&format!("{current}/libcuda.so"), "libcuda.so.1"),
            (
                "usr/lib/x86_64-linux-gnu/libcuda.so.1",
                "/etc/alternatives/cuda",
            ),
            ("etc/alternatives/cuda", &format!("/{current}/libcuda.so.1")),
            (
                "usr/lib/x86_64-linux-gnu/libnvidia-egl-gbm.so.1",
                "libnvidia-egl-gbm.so.1.1.2",
            ),
            ("usr/bin/nvidia-smi", "/etc/alternatives/nvidia-smi"),
            (
                "etc/alternatives/nvidia-smi",
                "/usr/lib/nvidia/current/nvidia-smi",
            ),
            (
                "etc/vulkan/icd.d/nvidia_icd.json",
                "/usr/share/nvidia/nvidia_icd.json",
            ),
        ]);
    insta::assert_yaml_snapshot!(host.find());
}

#[test]
fn red_hat_with_32_bit_libraries() {
    let host = Host::new();
    host.libraries(62, "usr/lib64", &LIBRARIES)
        .libraries(62, "usr/lib64", &["libnvidia-nvvm70.so.4"])
        .libraries(3, "usr/lib", &LIBRARIES)
        .libraries(62, "usr/lib64/vdpau", &["libvdpau_nvidia.so.580.95.05"])
        .libraries(62, "usr/lib64/xorg/modules/drivers", &["nvidia_drv.so"])
        .libraries(
            62,
            "usr/lib64/xorg/modules/extensions",
            &["libglxserver_nvidia.so.580.95.05"],
        )
        .programs("usr/bin", &["nvidia-smi", "nvidia-cdi-hook", "nvidia-ctk"])
        .programs("usr/sbin", &["nvidia-cuda-mps-control"])
        .file("usr/lib/firmware/nvidia/580.95.05/gsp_tu10x.bin", "x")
        .file("usr/share/vulkan/icd.d/nvidia_icd.x86_64.json", "{}")
        .file("etc/OpenCL/vendors/nvidia.icd", "libnvidia-opencl.so.1")
        .file("etc/cufile.json", "{}")
        .file("run/udev/control", "")
        .links(&[
            ("lib", "usr/lib"),
            ("lib64", "usr/lib64"),
            ("usr/lib64/libcuda.so.1", "libcuda.so.580.95.05"),
            ("usr/lib64/libcuda.so", "libcuda.so.1"),
            (
                "usr/lib64/gbm/nvidia-drm_gbm.so",
                "../libnvidia-allocator.so.1",
            ),
            (
                "usr/lib64/libnvidia-allocator.so.1",
                "libnvidia-allocator.so.580.95.05",
            ),
            (
                "usr/lib64/xorg/modules/extensions/libglxserver_nvidia.so",
                "libglxserver_nvidia.so.580.95.05",
            ),
        ]);
    insta::assert_yaml_snapshot!(host.find());
}

#[test]
fn a_driver_in_a_container_of_its_own() {
    let host = Host::new();
    host.file("usr/lib/x86_64-linux-gnu/libcuda.so.570.1", elf(62))
        .file(
            "lib/firmware/custom/nvidia/580.95.05/gsp_ga10x.bin",
            "host's",
        )
        .file(
            "sys/module/firmware_class/parameters/path",
            "/run/firmware\n",
        )
        .file("proc/sys/kernel/osrelease", "6.8.0-1\n");
    let root = "run/nvidia/driver";
    host.libraries(62, &format!("{root}/usr/lib/x86_64-linux-gnu"), &LIBRARIES)
        .programs(&format!("{root}/usr/bin"), &["nvidia-smi"])
        .file(
            &format!("{root}/run/firmware/nvidia/580.95.05/gsp_ga10x.bin"),
            "x",
        )
        .file(
            &format!("{root}/lib/firmware/6.8.0-1/nvidia/580.95.05/gsp_tu10x.bin"),
            "x",
        )
        .special(
            &format!("{root}/run/nvidia-fabricmanager/socket"),
            FileType::Socket,
        )
        .links(&[(
            &format!("{root}/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
            "/usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05",
        )]);
    let files = HostFiles::new(host.path(), Arc::default());
    let mut finder = FileFinder::new(host.path().join(root), files);
    let found = finder.find_current_files(&driver(), &[], Instant::now());
    insta::assert_yaml_snapshot!(*found);
}

#[test]
fn a_host_with_the_gpu_operator_s_toolkit() {
    let host = Host::new();
    let lib = "usr/lib/x86_64-linux-gnu";
    host.libraries(62, lib, &LIBRARIES)
        .programs("usr/bin", &["nvidia-smi"])
        .programs(
            "usr/local/nvidia/toolkit",
            &["nvidia-cdi-hook", "nvidia-ctk"],
        )
        .file("vulkan/icd.d/nvidia_icd.json", "{}")
        .file("tmp/nvidia-mps/control.lock", "")
        .links(&[(
            &format!("{lib}/libnvidia-ml.so.1"),
            "libnvidia-ml.so.580.95.05",
        )]);
    insta::assert_yaml_snapshot!(host.find());
}

#[test]
fn an_arm_machine_of_which_the_loader_s_cache_tells() {
    let host = Host::new();
    host.libraries(183, "opt/driver/lib", &LIBRARIES)
        .libraries(
            62,
            "usr/lib/x86_64-linux-gnu",
            &["libnvidia-tls.so.580.95.05"],
        )
        .programs("usr/bin", &["nvidia-smi", "nvidia-imex"])
        .file("usr/share/vulkan/icd.d/nvidia_icd.aarch64.json", "{}")
        .links(&[("opt/driver/lib/libcuda.so.1", "libcuda.so.580.95.05")]);
    let mut cache = b"glibc-ld.so.cache1.1".to_vec();
    for word in [1_u32, 60, 2, 0, 0, 0, 0] {
        cache.extend(word.to_le_bytes());
    }
    for word in [0x0a03_u32, 72, 85, 0, 0, 0] {
        cache.extend(word.to_le_bytes());
    }
    cache.extend(b"libcuda.so.1\0/opt/driver/lib/libcuda.so.1\0");
    host.file("etc/ld.so.cache", cache);
    insta::assert_yaml_snapshot!(host.find());
}
