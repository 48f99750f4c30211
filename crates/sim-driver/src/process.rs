//! Processes on a card, and accounting.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{
    nvmlAccountingStats_t, nvmlProcessDetail_v1_t, nvmlProcessDetailList_v1_t, nvmlProcessInfo_t,
    nvmlProcessInfo_v1_t, nvmlProcessUtilizationInfo_v1_t, nvmlProcessUtilizationSample_t,
    nvmlProcessesUtilizationInfo_v1_t,
};
use sim_node::state::{GpuProcess, ProcessWork};

use super::{
    call::{self, CalledDevice},
    code::{INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, NvmlResult},
    engine::{now_micros, undivided},
    memory::{mib_to_bytes, to_counter},
    nvml,
    setting::switch,
    wire::{Maybe, Out, TextOut},
};

/// NVML's instance id for "not in an instance".
const NOWHERE: c_uint = u32::MAX;
/// Number of processes in the driver's accounting buffer.
const ACCOUNTS: c_uint = 4000;

nvml! {
    device nvmlDeviceGetComputeRunningProcesses: (count: Out<c_uint>, list: Maybe<nvmlProcessInfo_v1_t>) |unit|
        list.write_list(&count, &short_infos(unit, ProcessWork::Compute));
    device nvmlDeviceGetGraphicsRunningProcesses: (count: Out<c_uint>, list: Maybe<nvmlProcessInfo_v1_t>) |unit|
        list.write_list(&count, &short_infos(unit, ProcessWork::Graphics));
    device nvmlDeviceGetMPSComputeRunningProcesses: (count: Out<c_uint>, list: Maybe<nvmlProcessInfo_v1_t>) |unit|
        list.write_list(&count, &short_infos(unit, ProcessWork::Mps));
    device nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetComputeRunningProcesses_v3: (count: Out<c_uint>, list: Maybe<nvmlProcessInfo_t>) |unit|
        list.write_list(&count, &long_infos(unit, ProcessWork::Compute));
    device nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlDeviceGetGraphicsRunningProcesses_v3: (count: Out<c_uint>, list: Maybe<nvmlProcessInfo_t>) |unit|
        list.write_list(&count, &long_infos(unit, ProcessWork::Graphics));
    device nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlDeviceGetMPSComputeRunningProcesses_v3: (count: Out<c_uint>, list: Maybe<nvmlProcessInfo_t>) |unit|
        list.write_list(&count, &long_infos(unit, ProcessWork::Mps));
    device nvmlDeviceGetRunningProcessDetailList: (list: Out<nvmlProcessDetailList_v1_t>) |unit| {
        list.check_version(1)?;
        process_details(unit, &list)
    };
    device nvmlDeviceGetProcessUtilization: (samples: Maybe<nvmlProcessUtilizationSample_t>, count: Out<c_uint>, since: c_ulonglong) |unit| {
        let pids = busy_processes(unit, since)?;
        let sample = |(pid, share)| nvmlProcessUtilizationSample_t {
            pid,
            timeStamp: now_micros(),
            smUtil: share,
            memUtil: 0,
            encUtil: 0,
            decUtil: 0,
        };
        samples.write_list(&count, &pids.into_iter().map(sample).collect::<Vec<_>>())
    };
    device nvmlDeviceGetProcessesUtilizationInfo: (info: Out<nvmlProcessesUtilizationInfo_v1_t>) |unit| {
        info.check_version(1)?;
        process_utilization(unit, &info)
    };
    device nvmlDeviceGetAccountingMode: (mode: Out<c_uint>) |unit| {
        unit.require_card()?;
        mode.set(c_uint::from(unit.gpu.settings.accounting))
    };
    device nvmlDeviceSetAccountingMode: (mode: c_uint) |unit| {
        unit.require_card()?;
        let on = switch(mode)?;
        call::change_card(unit, |gpu, _| { gpu.settings.accounting = on; Ok(()) })
    };
    device nvmlDeviceGetAccountingBufferSize: (size: Out<c_uint>) |unit| {
        unit.require_card()?;
        size.set(ACCOUNTS)
    };
    device nvmlDeviceGetAccountingPids: (count: Out<c_uint>, pids: Maybe<c_uint>) |unit| {
        let all: Vec<_> = accounts(unit)?.map(|process| process.pid).collect();
        pids.write_list(&count, &all)
    };
    device nvmlDeviceGetAccountingStats: (pid: c_uint, stats: Out<nvmlAccountingStats_t>) |unit| {
        let process = accounts(unit)?.find(|process| process.pid == pid).ok_or(NOT_FOUND)?;
        stats.set(nvmlAccountingStats_t {
            gpuUtilization: to_counter(unit.gpu.sensors.utilization),
            memoryUtilization: to_counter(unit.gpu.sensors.memory_utilization),
            maxMemoryUsage: mib_to_bytes(process.memory_mib),
            // Running time and start time are zero as long as the process runs.
            time: 0,
            startTime: 0,
            isRunning: 1,
            reserved: [0; 5],
        })
    };
    device nvmlDeviceClearAccountingPids: () |unit| accounts(unit).map(|_| ());
    system nvmlSystemGetProcessName: (pid: c_uint, name: TextOut, length: c_uint) |state| {
        if length == 0 {
            return Err(INVALID_ARGUMENT);
        }
        let known = state.gpus.iter().flat_map(|gpu| &gpu.processes).any(|process| process.pid == pid);
        let path = fs_err::read_link(format!("/proc/{pid}/exe")).ok();
        let real = path.as_deref().and_then(|path| path.to_str());
        let text = real.or(known.then_some("python3")).ok_or(NOT_FOUND)?;
        // A name that is too long is truncated without an error.
        let room = usize::try_from(length).unwrap_or(usize::MAX).saturating_sub(1);
        let end = (0..=text.len().min(room)).rev().find(|end| text.is_char_boundary(*end));
        name.set(length, text.get(..end.unwrap_or(0)).unwrap_or_default())
    };
}

/// Processes on a device that do this kind of work. A MIG device has those of its instances only.
fn doing<'a>(
    unit: &CalledDevice<'a>,
    work: ProcessWork,
) -> impl Iterator<Item = &'a GpuProcess> + use<'a> {
    let ids = unit.mig.map(|(_, mig, _)| (mig.gi, mig.ci));
    let all = unit.gpu.processes.iter();
    all.filter(move |process| process.work == work && (ids.is_none() || process.instance == ids))
}

fn short_infos(unit: &CalledDevice<'_>, work: ProcessWork) -> Vec<nvmlProcessInfo_v1_t> {
    let info = |process: &GpuProcess| nvmlProcessInfo_v1_t {
        pid: process.pid,
        usedGpuMemory: mib_to_bytes(process.memory_mib),
    };
    doing(unit, work).map(info).collect()
}

fn long_infos(unit: &CalledDevice<'_>, work: ProcessWork) -> Vec<nvmlProcessInfo_t> {
    let info = |process: &GpuProcess| nvmlProcessInfo_t {
        pid: process.pid,
        usedGpuMemory: mib_to_bytes(process.memory_mib),
        gpuInstanceId: process.instance.map_or(NOWHERE, |(gi, _)| gi),
        computeInstanceId: process.instance.map_or(NOWHERE, |(_, ci)| ci),
    };
    doing(unit, work).map(info).collect()
}

fn process_details(unit: &CalledDevice<'_>, list: &Out<nvmlProcessDetailList_v1_t>) -> NvmlResult {
    let mut asked = list.get()?;
    let work = match asked.mode {
        0 => ProcessWork::Compute,
        1 => ProcessWork::Graphics,
        2 => ProcessWork::Mps,
        _ => return Err(INVALID_ARGUMENT),
    };
    let detail = |info: nvmlProcessInfo_t| nvmlProcessDetail_v1_t {
        pid: info.pid,
        usedGpuMemory: info.usedGpuMemory,
        gpuInstanceId: info.gpuInstanceId,
        computeInstanceId: info.computeInstanceId,
        usedGpuCcProtectedMemory: 0,
    };
    let all: Vec<_> = long_infos(unit, work).into_iter().map(detail).collect();
    let room = asked.numProcArrayEntries;
    let place = Maybe::member_pointer(asked.procArray);
    // The number is written even if the room is too small, so that the caller can ask again.
    asked.numProcArrayEntries = super::instance::to_nvml_count(all.len())?;
    list.set(asked)?;
    place.fill_exact(room, &all)
}

fn process_utilization(
    unit: &CalledDevice<'_>,
    info: &Out<nvmlProcessesUtilizationInfo_v1_t>,
) -> NvmlResult {
    let mut asked = info.get()?;
    let sample = |(pid, share)| nvmlProcessUtilizationInfo_v1_t {
        timeStamp: now_micros(),
        pid,
        smUtil: share,
        memUtil: 0,
        encUtil: 0,
        decUtil: 0,
        jpgUtil: 0,
        ofaUtil: 0,
    };
    let pids = busy_processes(unit, asked.lastSeenTimeStamp)?;
    let all: Vec<_> = pids.into_iter().map(sample).collect();
    let room = asked.processSamplesCount;
    let place = Maybe::member_pointer(asked.procUtilArray);
    asked.processSamplesCount = super::instance::to_nvml_count(all.len())?;
    info.set(asked)?;
    place.fill_exact(room, &all)
}

/// Processes on a card, each with an equal share of the card's utilisation.
fn busy_processes(
    unit: &CalledDevice<'_>,
    since: c_ulonglong,
) -> NvmlResult<Vec<(c_uint, c_uint)>> {
    undivided(unit)?;
    let all = &unit.gpu.processes;
    if all.is_empty() || now_micros() <= since {
        return Err(NOT_FOUND);
    }
    let share = unit.gpu.sensors.utilization / all.len() as u64;
    Ok(all
        .iter()
        .map(|process| (process.pid, to_counter(share)))
        .collect())
}

fn accounts<'a>(
    unit: &CalledDevice<'a>,
) -> NvmlResult<impl Iterator<Item = &'a GpuProcess> + use<'a>> {
    unit.require_card()?;
    let on = unit.gpu.settings.accounting;
    on.then_some(()).ok_or(NOT_SUPPORTED)?;
    let kept = unit.gpu.processes.iter().take(ACCOUNTS as usize);
    Ok(kept.filter(|process| process.work != ProcessWork::Graphics))
}
