//! Memory, pointers, copies.

use super::*;

#[test]
fn memory_operations() {
    records(
        pointers,
        &[
            "lds_base",
            "buffer_ptr",
            "thread_id",
            "ptr_add",
            "ptr_to_int",
            "add",
            "int_to_ptr",
            "ptr_load",
            "ptr_add",
            "ptr_store",
            "ptr_cast",
            "atomic_add",
            "atomic_sub",
            "atomic_min",
            "atomic_max",
            "atomic_xchg",
            "atomic_and",
            "atomic_or",
            "atomic_xor",
            "atomic_cas",
            "fence",
            "drain",
            "barrier",
        ],
    );
    records(
        buffers,
        &[
            "thread_id",
            "buffer_load",
            "buffer_store",
            "buffer_atomic",
            "buffer_atomic_cas",
            "make_buffer",
            "s_buffer_load",
            "lds_base",
            "copy_to_lds",
        ],
    );
}

#[test]
fn a_masked_access_prints_its_parts() {
    let k = kernel(|k| {
        let (x, t) = (k.buffer::<f32, InOut>(0), k.thread_id(Axis::X));
        let live = t.lt(40);
        let far = k.block_id(Axis::X) * 16;
        let options = LoadOptions::new().mask(live, -1.0).soffset(far).cache(Cache::SYS.nontemporal());
        let v = k.buffer_load_with::<f32>(x, t.to::<Idx>(), options);
        k.buffer_store_with(v, x, Bytes(t * 4), StoreOptions::new().mask(live).soffset(far).cache(Cache::DEV));
        let options = AtomicOptions::new().mask(live).soffset(far).nontemporal();
        drop_value(k.buffer_atomic_with(AtomicOp::Max, v, x, 3, Scope::System, options));
        drop_value(k.buffer_atomic_cas_with(0.0, v, x, 3, Scope::Device.one_as(), options));
    });
    let text = body(&k);
    for wanted in [
        "= buffer_load ",
        " fill=%",
        " coherence=system nontemporal=true",
        " unit=bytes scalar=%",
        " coherence=device",
        "= buffer_atomic atomic_max, ",
        "= buffer_atomic_cas ",
        " nontemporal=true scope=device_one_as",
    ] {
        assert!(text.contains(wanted), "{wanted} in\n{text}");
    }
    assert_eq!((text.matches(" mask=%").count(), text.matches(" scalar=%").count()), (4, 4), "{text}");
}

#[test]
fn pointer_options_reach_the_operation() {
    let k = kernel(|k| {
        let p = k.constant(256u64).to_ptr::<u32>();
        let v: V<Vector<u32, 4>> = k.ptr_load_with(p, Memory::new().align(16).nontemporal().volatile());
        k.ptr_store_with(v.element(0), p, Memory::new().release(Scope::System));
        drop_value(k.ptr_load_with::<u32>(p, Memory::new().acquire(Scope::Workgroup)));
        drop_value(k.ptr_load_with::<u32>(p, Memory::new().relaxed(Scope::Wave)));
        drop_value(k.ptr_load_with::<u32>(p, Memory::new().seq_cst(Scope::Device)));
    });
    let text = body(&k);
    for wanted in [
        "align=16 volatile=true nontemporal=true",
        "order=release",
        "order=acquire scope=workgroup",
        "order=relaxed scope=wave",
        "order=seq_cst scope=device",
    ] {
        assert!(text.contains(wanted), "{wanted} in\n{text}");
    }
}

#[test]
fn a_pointer_moves_by_any_integer() {
    let k = kernel(|k| {
        let p = k.lds::<f32>("a", 64);
        let (lane, block) = (k.lane_id(), k.block_id(Axis::X));
        drop_value(
            p + 4 + 4u32 + 4i64 + 4u64 + Idx(4) + lane + block.to::<Idx>() + block.to::<i64>() + lane.to::<u64>(),
        );
    });
    assert_eq!(names(&k).iter().filter(|n| **n == "ptr_add").count(), 9);
}

#[test]
fn members_of_an_arena() {
    let k = kernel(|k| {
        let arena = k.lds_bytes("arena", 96, 32);
        drop_value((arena.byte_offset::<u64>(64), arena.byte_offset::<u8>(8)));
        drop_value(k.lds_aligned::<f32>("rows", 8, 128));
    });
    assert_eq!(names(&k), ["lds_base", "ptr_add", "ptr_cast", "ptr_add", "lds_base"]);
    assert_eq!((k.lds[0].elem, k.lds[0].len, k.lds[0].align, k.lds[1].align), (Scalar::U8, 96, 32, 128));
}

#[test]
fn addresses_from_memory_are_the_same_for_all() {
    records(|k| drop_value(k.load_ptr64(k.buffer::<u64, In>(1), 3)), &["buffer_load", "readfirstlane"]);
    records(
        |k| drop_value(k.rsrc::<f32>(k.load_ptr64(k.buffer::<u64, In>(1).ptr(), k.block_id(Axis::X)))),
        &["buffer_ptr", "block_id", "ptr_add", "ptr_load", "readfirstlane", "make_buffer"],
    );
}

#[test]
fn an_lds_pointer_is_a_number_of_32_bits() {
    let k = kernel(|k| {
        let tile = k.lds::<f32>("tile", 64);
        let at: V<u32> = (tile + k.lane_id()).to_int();
        let there: V<LdsPtr<u64>> = (at & 0xF8).to_ptr();
        drop_value(k.ptr_load::<u64>(there));
    });
    let text = body(&k);
    assert!(text.contains(": u32 = ptr_to_int ") && text.contains(": lds<u64> = int_to_ptr "), "{text}");
}

#[test]
fn scopes_narrow_and_widen() {
    for scope in Scope::ALL.iter().copied() {
        let (narrow, wide) = (scope.one_as(), scope.wide());
        assert_eq!(narrow.name(), format!("{}_one_as", wide.name()));
        assert_eq!((narrow.wide(), wide.one_as(), narrow.one_as(), wide.wide()), (wide, narrow, narrow, wide));
    }
}

/// Reads and stores to images, by texture units or not.
pub(super) fn images(units: Units) -> Kernel {
    let target = Target::SM_90;
    let read = Image2d::new(7, 5).linear().normalized().units(units);
    let stored = Image2d::new(7, 5).units(units);
    let params = vec![
        Param { name: "t", kind: read.texture(Scalar::F16, target) },
        Param { name: "s", kind: stored.surface(Scalar::F16, target) },
    ];
    let kernel = build("k", target, LAUNCH, params, |k| {
        let (t, s) = (k.texture::<f16>(0, read), k.surface::<f16>(1, stored));
        assert_eq!((t.image(), s.image()), (read, stored));
        let x = k.lane_id().bitcast::<i32>();
        let texel: V<Vector<f16, 4>> = k.texture_fetch::<f16, _>(t, x, 1);
        let colour: V<Vector<f32, 4>> = k.texture_sample::<f32, _>(t, 0.5, 0.25);
        let own: V<Vector<f16, 4>> = k.texture_sample::<f16, _>(t, 0.5, 0.25);
        drop_value(colour);
        k.surface_store(texel + own, s, x, 2);
    })
    .unwrap();
    verify(&kernel, target).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
    kernel
}

#[test]
fn images_are_read_and_stored_to_by_units_or_as_buffers() {
    let hardware = images(Units::Hardware);
    assert_eq!(
        names(&hardware),
        ["lane_id", "bitcast", "texture_fetch", "texture_sample", "texture_sample", "add", "surface_store"]
    );
    assert_eq!(hardware.abi_layout(), (vec![0, 8], 16));
    assert_eq!(images(Units::WhereThereAre), hardware);
    let text = hardware.to_string();
    assert!(text.contains("param %0 t: texture<f16> size 7x5 filter linear coordinates normalized\n"), "{text}");
    assert!(text.contains("param %1 s: surface<f16> size 7x5\n"), "{text}");
    let spelt = images(Units::Emulated);
    let count = |name| names(&spelt).iter().filter(|n| **n == name).count();
    assert_eq!(["buffer_load", "buffer_store", "texture_fetch", "surface_store"].map(count), [1 + 4 + 4, 1, 0, 0]);
}
