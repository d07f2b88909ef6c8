#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# darktable-cli develops a photograph-like 16-bit PNG (colour profiles, sharpening, scaling) on the device
# under test. Its own log must say that the modules ran on OpenCL, and the picture must be close to the one
# that darktable makes without OpenCL.
#
# darktable refuses new CPU devices until a person allows them; the first run writes the device's line into
# the configuration and the script allows it there. Only the kernel files that this development needs are
# offered (all of them take over a minute to build on two cores). darktable quotes its -I path, which PoCL
# 3.1 does not understand natively; the working directory makes its includes found there too.
CLIENT=darktable
. "$(dirname "$0")/common.sh"
platform_under_test

log=$WORK/log
data=$WORK/data
mkdir -p "$data/kernels" "$WORK/config"
for entry in /usr/share/darktable/*; do
  [ "${entry##*/}" = kernels ] || ln -s "$entry" "$data/"
done
cp /usr/share/darktable/kernels/*.cl /usr/share/darktable/kernels/*.h "$data/kernels/"
printf '%s\n' 'basic.cl 2' 'blendop.cl 3' 'gaussian.cl 6' 'sharpen.cl 7' >"$data/kernels/programs.conf"

/usr/bin/python3 "$HERE/test_image.py" make >"$WORK/in.ppm" || fail "could not make the test image"
pnmtopng "$WORK/in.ppm" >"$WORK/in.png" 2>>"$log" || fail "pnmtopng failed" "$log"
cat >"$WORK/in.png.xmp" <<'XMP'
<?xml version="1.0" encoding="UTF-8"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about="" xmlns:darktable="http://darktable.sf.net/" darktable:xmp_version="5"
    darktable:auto_presets_applied="1" darktable:history_end="1" darktable:iop_order_version="2">
   <darktable:history><rdf:Seq>
     <rdf:li darktable:num="0" darktable:operation="sharpen" darktable:enabled="1"
      darktable:modversion="1" darktable:params="000000400000003f0000003f" darktable:multi_name=""
      darktable:multi_priority="0" darktable:blendop_version="7"
      darktable:blendop_params="gz12eJxjYGBgkGAAgRNODGiAEV0AJ2iwh+CRyscOAAdeGQQ="/>
   </rdf:Seq></darktable:history>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
XMP

develop() { # develop OUTPUT OPTION...
  local output=$1
  shift
  (cd "$data/kernels" && "$LIMIT" 240 darktable-cli "$WORK/in.png" "$WORK/in.png.xmp" "$output" \
    --width 200 --hq true --core --datadir "$data" --configdir "$WORK/config" \
    --cachedir "$WORK/cache" --library :memory: -d opencl -d perf "$@") >"$log" 2>&1 </dev/null ||
    fail "darktable-cli ended with $?" "$log"
  [ -s "$output" ] || fail "darktable-cli wrote no picture" "$log"
}

# darktable 5 takes platforms that it does not know by name only if the preference says so.
develop "$WORK/first.png" --conf opencl=true --conf clplatform_other=true
sed -i -E 's/^(cldevice_v[0-9]+_[^=]*=([0-9]+ ){7})1 /\10 /' "$WORK/config/darktablerc"
develop "$WORK/opencl.png" --conf opencl=true --conf clplatform_other=true
grep -q "PLATFORM.*: *$PLATFORM," "$log" || fail "darktable did not see $PLATFORM" "$log"
grep -q 'OpenCL successfully initialized' "$log" || fail "darktable did not accept the device" "$log"
# By their names in darktable 4 and 5.
for module in 'input color profile|colorin' sharpen 'output color profile|colorout' 'scale into final size|finalscale'; do
  grep -qE "processed \`($module)' on GPU" "$log" || fail "'$module' did not run on OpenCL" "$log"
done
develop "$WORK/cpu.png" --disable-opencl
difference=$(/usr/bin/python3 "$HERE/test_image.py" compare "$WORK/opencl.png" "$WORK/cpu.png") ||
  fail "the picture differs from the one made without OpenCL: $difference"
pass "a PNG developed on $PLATFORM; against darktable's own CPU code: $difference"
