// Matrix products: a loader and a tile product as structures; SIMD-group matrices; matrix-vector; 4-bit blocks.
#include <metal_stdlib>
#include <metal_simdgroup>
#include <metal_simdgroup_matrix>
using namespace metal;

#define STEEL_CONST static constant constexpr const
#define STEEL_PRAGMA_UNROLL _Pragma("clang loop unroll(full)")
#define QK4_0 32

struct GEMMParams {
  const int M, N, K;
  const int lda, ldb, ldd;
};

template <typename T, short BROWS, short BCOLS, short dst_ld, short tgp_size>
struct BlockLoader {
  STEEL_CONST short n_reads = (BCOLS * BROWS) / tgp_size;
  STEEL_CONST short TCOLS = BCOLS / n_reads;
  STEEL_CONST short TROWS = tgp_size / TCOLS;
  const int src_ld;
  const short thread_idx;
  const short bi;
  const short bj;
  threadgroup T* dst;
  const device T* src;
  struct alignas(16) ReadVector {
    uint8_t v[sizeof(T) * n_reads];
  };

  METAL_FUNC BlockLoader(
      const device T* src_,
      const int src_ld_,
      threadgroup T* dst_,
      ushort simd_group_id [[simdgroup_index_in_threadgroup]],
      ushort simd_lane_id [[thread_index_in_simdgroup]])
      : src_ld(src_ld_),
        thread_idx(simd_group_id * 32 + simd_lane_id),
        bi(thread_idx / TCOLS),
        bj(n_reads * (thread_idx % TCOLS)),
        dst(dst_ + bi * dst_ld + bj),
        src(src_ + bi * src_ld + bj) {}

  METAL_FUNC void load_unsafe() const {
    STEEL_PRAGMA_UNROLL
    for (short i = 0; i < BROWS; i += TROWS) {
      *((threadgroup ReadVector*)(&dst[i * dst_ld])) = *((const device ReadVector*)(&src[i * src_ld]));
    }
  }

  METAL_FUNC void load_safe(short2 src_tile_dim) const {
    src_tile_dim = src_tile_dim - short2(bj, bi);
    if (src_tile_dim.x <= 0 || src_tile_dim.y <= 0) {
      return;
    }
    bool tmp_idx[n_reads];
    T tmp_val[n_reads];
    for (short j = 0; j < n_reads; j++) {
      tmp_idx[j] = j < src_tile_dim.x;
      tmp_val[j] = src[(tmp_idx[j] ? j : 0)];
      dst[j] = tmp_idx[j] ? tmp_val[j] : T(0);
    }
  }
  METAL_FUNC void next() { src += BCOLS; }
};

template <typename T, int kFragRows_, int kFragCols_>
struct MMATile {
  typedef simdgroup_matrix<T, 8, 8> mat_type;
  typedef vec<T, 2> frag_type;
  STEEL_CONST int kTileRows = kFragRows_;
  STEEL_CONST int kTileCols = kFragCols_;
  mat_type frags[kFragRows_ * kFragCols_] = {mat_type(0)};
  METAL_FUNC MMATile() thread {}
  METAL_FUNC constexpr thread mat_type& at(short i, short j) { return frags[i * kTileCols + j]; }
  METAL_FUNC constexpr const thread mat_type& at(short i, short j) const { return frags[i * kTileCols + j]; }
  METAL_FUNC thread frag_type& elements(short i, short j) { return at(i, j).thread_elements(); }
  template <typename U>
  METAL_FUNC void load(const threadgroup U* src, short ld) {
    for (short i = 0; i < kTileRows; ++i) {
      for (short j = 0; j < kTileCols; ++j) {
        simdgroup_load(at(i, j), src + i * 8 * ld + j * 8, ld, ulong2(0, 0), false);
      }
    }
  }
};

template <typename T, typename AccumType = float, int BM = 32, int BN = 32, int BK = 16>
[[kernel, max_total_threads_per_threadgroup(128)]] void gemm(
    const device T* A [[buffer(0)]],
    const device T* B [[buffer(1)]],
    device T* D [[buffer(3)]],
    const constant GEMMParams* params [[buffer(4)]],
    uint simd_lane_id [[thread_index_in_simdgroup]],
    uint simd_group_id [[simdgroup_index_in_threadgroup]],
    uint3 tid [[threadgroup_position_in_grid]],
    uint3 lid [[thread_position_in_threadgroup]]) {
  (void)lid;
  constexpr short tgp_mem_size = BM * (BK + 4);
  threadgroup T As[tgp_mem_size];
  threadgroup T Bs[BK * (BN + 4)];
  const int tid_y = tid.y;
  A += tid_y * BM * size_t(params->lda);
  BlockLoader<T, BM, BK, BK + 4, 128> loader_a(A, params->lda, As, simd_group_id, simd_lane_id);
  BlockLoader<T, BK, BN, BN + 4, 128> loader_b(B + tid.x * BN, params->ldb, Bs, simd_group_id, simd_lane_id);
  thread MMATile<T, 2, 1> a;
  thread MMATile<T, 1, 2> b;
  MMATile<AccumType, 2, 2> c;
  for (int k = 0; k < params->K; k += BK) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    loader_a.load_unsafe();
    loader_b.load_safe(short2(BN, min(BK, params->K - k)));
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (short kk = 0; kk < BK; kk += 8) {
      simdgroup_barrier(mem_flags::mem_none);
      a.load(&As[kk], BK + 4);
      b.load(&Bs[kk * (BN + 4)], BN + 4);
      for (short i = 0; i < 2; i++) {
        for (short j = 0; j < 2; j++) {
          simdgroup_multiply_accumulate(c.at(i, j), a.at(i, 0), b.at(0, j), c.at(i, j));
        }
      }
    }
    loader_a.next();
    loader_b.next();
  }
  threadgroup_barrier(mem_flags::mem_none);
  for (short i = 0; i < 2; i++) {
    for (short j = 0; j < 2; j++) {
      thread auto& e = c.elements(i, j);
      D[i * params->ldd + j] = T(e[0]);
    }
  }
}
template [[host_name("gemm_f16")]] [[kernel]] decltype(gemm<half>) gemm<half>;
template [[host_name("gemm_f32")]] [[kernel]] decltype(gemm<float, float, 32, 32, 16>) gemm<float, float, 32, 32, 16>;

typedef struct {
  half d;
  uint8_t qs[QK4_0 / 2];
} block_q4_0;
static_assert(sizeof(block_q4_0) == sizeof(half) + QK4_0 / 2, "wrong q4_0 block size/padding");

inline float block_q_n_dot_y(device const block_q4_0* qb_curr, float sumy, thread float* yl, int il) {
  float d = qb_curr->d;
  float4 acc = 0.f;
  device const uint16_t* qs = ((device const uint16_t*)qb_curr + 1 + il / 2);
  for (int i = 0; i < 8; i += 2) {
    acc[0] += yl[i + 0] * (qs[i / 2] & 0x000F);
    acc[1] += yl[i + 1] * (qs[i / 2] & 0x0F00);
    acc[2] += yl[i + 8] * (qs[i / 2] & 0x00F0);
    acc[3] += yl[i + 9] * (qs[i / 2] & 0xF000);
  }
  return d * (sumy * -8.f + acc[0] + acc[1] + acc[2] + acc[3]);
}

template <typename type4x4>
void dequantize_q4_0(device const block_q4_0* xb, short il, thread type4x4& reg) {
  device const uint16_t* qs = ((device const uint16_t*)xb + 1);
  const float d1 = il ? (xb->d / 16.h) : xb->d;
  const float md = -8.h * xb->d;
  const ushort mask0 = il ? 0x00F0 : 0x000F;
  float4x4 reg_f;
  for (int i = 0; i < 8; i++) {
    reg_f[i / 2][2 * (i % 2) + 0] = d1 * (qs[i] & mask0) + md;
    reg_f[i / 2][2 * (i % 2) + 1] = d1 * ((qs[i] >> 8) & mask0) + md;
  }
  reg = (type4x4)reg_f;
}

template <typename block_q, int nl, void (*dequantize)(device const block_q*, short, thread half4x4&)>
kernel void get_rows_q(device const void* src [[buffer(0)]], device float* dst [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
  half4x4 temp;
  dequantize(((device const block_q*)src) + i / nl, i % nl, temp);
  *(((device float4x4*)dst) + i) = float4x4(temp);
}
typedef decltype(get_rows_q<block_q4_0, 2, dequantize_q4_0>) get_rows_q_t;
template [[host_name("get_rows_q4_0")]] kernel get_rows_q_t get_rows_q<block_q4_0, 2, dequantize_q4_0>;

#define N_DST 4
kernel void mul_vec_q4_0(device const void* src0 [[buffer(0)]], device const float* src1 [[buffer(1)]],
                         device float* dst [[buffer(2)]], constant int64_t& ne00 [[buffer(3)]],
                         uint3 tgpig [[threadgroup_position_in_grid]], uint tiisg [[thread_index_in_simdgroup]],
                         uint sgitg [[simdgroup_index_in_threadgroup]]) {
  const int nb = ne00 / QK4_0;
  const int first_row = (tgpig.x * 2 + sgitg) * N_DST;
  device const block_q4_0* x = (device const block_q4_0*)src0 + first_row * nb;
  float yl[16];
  float sumf[N_DST] = {0.f};
  const int ix = (tiisg / 2), il = (tiisg % 2) * 8;
  for (int ib = ix; ib < nb; ib += 16) {
    float2 sumy = {0.f, 0.f};
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
      sumy[0] += src1[i] + src1[i + 1];
      yl[i + 0] = src1[i + 0];
      yl[i + 1] = src1[i + 1] / 256.f;
      yl[i + 8] = src1[i + 16];
      yl[i + 9] = src1[i + 17] / 4096.f;
    }
    for (int row = 0; row < N_DST; row++) {
      sumf[row] += block_q_n_dot_y(x + ib + row * nb, sumy[0] + sumy[1], yl, il);
    }
  }
  for (int row = 0; row < N_DST; ++row) {
    const float tot = simd_sum(sumf[row]);
    if (tiisg == 0 && first_row + row < N_DST) {
      dst[first_row + row] = tot;
    }
  }
}

kernel void gemv4(device const half4* mat [[buffer(0)]], device const half4* v [[buffer(1)]],
                  device float* out [[buffer(2)]], constant uint& k4 [[buffer(3)]],
                  uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float acc = 0;
  for (uint i = lane; i < k4; i += 32) {
    acc += dot(float4(mat[row * k4 + i]), (float4)v[i]);
  }
  acc = simd_sum(acc);
  if (simd_is_first()) out[row] = acc;
}
