#!/bin/sh
# Runs tests on Linux aarch64, emulated: `make test-arm64`.
#
#     sh tests/platforms/arm64.sh PYTHON [pytest's arguments]
#
# PYTHON is one with pip, of this machine. A Debian for aarch64 is made once in SMELT_ARM64_ROOT (build/arm64); packages
# come as wheels, fetched by this machine's pip. SMELT_ARM64_SECONDS (600) bounds the tests: those that are not begun by
# then are skipped, and counted. QEMU_CPU says which processor is emulated.
set -eu

python=$1; shift
here=$(cd "$(dirname "$0")/../.." && pwd)
root=${SMELT_ARM64_ROOT:-$here/build/arm64}
seconds=${SMELT_ARM64_SECONDS:-600}
export QEMU_CPU="${QEMU_CPU:-neoverse-n1}"
fail() { echo "test-arm64: $*" >&2; exit 1; }

if [ "$(uname -s)" != Linux ]; then fail "needs Linux; on a Mac, make test is a test on arm64 already"; fi
if [ "$(uname -m)" = aarch64 ]; then fail "this machine is aarch64: make test does it without emulation"; fi
[ "$(id -u)" = 0 ] || fail "needs root, for debootstrap and chroot"
for tool in debootstrap qemu-aarch64-static unshare; do
    command -v $tool >/dev/null || fail "$tool is missing: apt-get install qemu-user-static debootstrap util-linux"
done

# The kernel is to start programs for aarch64 in the emulator; also those that tests start.
formats=/proc/sys/fs/binfmt_misc
[ -e $formats/register ] || mount -t binfmt_misc binfmt_misc $formats
if [ ! -e $formats/qemu-aarch64 ]; then
    echo "test-arm64: registering qemu-aarch64 with this machine's kernel (until it starts again)"
    cat /usr/lib/binfmt.d/qemu-aarch64.conf > $formats/register
fi

if [ ! -e "$root/.ready" ]; then
    echo "test-arm64: making a Debian for aarch64 in $root, once: ten minutes"
    rm -rf "$root"; mkdir -p "$root"
    debootstrap --arch=arm64 --foreign --variant=minbase --include=python3,libgomp1 bookworm "$root" >"$root.log" 2>&1 \
        || fail "debootstrap failed: $root.log"
    chroot "$root" /debootstrap/debootstrap --second-stage >>"$root.log" 2>&1 || fail "debootstrap failed: $root.log"
    touch "$root/.ready"
fi

version=$(chroot "$root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
wanted=$("$python" "$here/tests/platforms/wheels.py" "$here/pyproject.toml" test demo)
stamp=$(printf '%s' "$wanted $version" | cksum | cut -d' ' -f1)
if [ ! -e "$root/opt/site/.$stamp" ]; then
    rm -rf "$root/opt/site"
    # shellcheck disable=SC2086
    "$python" -m pip install --quiet --only-binary=:all: --implementation cp --python-version "$version" \
        --platform manylinux_2_34_aarch64 --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 \
        --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 --target "$root/opt/site" $wanted
    touch "$root/opt/site/.$stamp"
fi

cat > "$root/inside.sh" <<'INSIDE'
#!/bin/sh
cd /repo
export HOME=/root PYTHONPATH=/repo/build/package:/opt/site:/repo PYTHONDONTWRITEBYTECODE=1 HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis
exec "$@"
INSIDE
chmod +x "$root/inside.sh"; mkdir -p "$root/repo"

# Mounts in a name space of their own: nothing stays mounted below build/, whatever happens.
inside() {
    ROOT=$root REPO=$here unshare --mount --propagation private sh -c '
        mount --bind "$REPO" "$ROOT/repo" && mount -o remount,bind,ro "$ROOT/repo" &&
        mount -t proc proc "$ROOT/proc" && mount --rbind /dev "$ROOT/dev" && exec chroot "$ROOT" /inside.sh "$@"' sh "$@"
}

echo "test-arm64: Python $version on an emulated $QEMU_CPU, $seconds seconds"
status=0
SMELT_TEST_SECONDS=$seconds inside python3 -m pytest -p no:cacheprovider -p tests.platforms.time_box -n 2 "$@" || status=$?

# The emulator's own choice of processor has SME, for which some BLAS multiply wrong: smelt sees it and goes on.
QEMU_CPU=max inside python3 -c '
import numpy as np, smelt
x = np.arange(10000.0, dtype=np.float32).reshape(100, 100) % 7
assert np.array_equal(smelt.array(x) @ smelt.array(x), x.astype(int) @ x.astype(int)), "wrong product"
print("products are right on the processor max")' || status=1
exit $status
