/* The core of recording and evaluation in C: what `core.py` and `steps.py` say in Python, and nothing else. Both run all
   tests (SMELT_CORE). What is rare (a recipe to be made, a Python number or a file name that was not met yet, what
   computes a node) is asked of Python.

   nodes.c: `Node`, `leaf`, `topological`, `parameter_below`; keys.c: `structure_key`, `dependent_on`; sizeless.c:
   `sizeless_key`; memory.c: `Memory`, `call`, `evaluated`; recipes.c: recipes for all sizes; plan.c: `Plan`; steps.c:
   running it; calls.c: `run_calls`, `run_on_buffers`; alike.c: `buffers_like`, `put_like`; elements.c: erf, shifts; selected.c: elements of one array or
   another; row_sums.c: sums of rows; row_extrema.c: extrema of rows; running.c: running sums and extrema; halves.c: half precision; threefry.c: random words;
   fourier.c: Fourier transforms; small_matrices.c: factors of small matrices; radix.c: sorting; written_rows.c:
   scattering; arranged.c: copies in another order; core.c: the module.

   All of it runs under the interpreter's lock. Releasing a chain of nodes does not recurse: that is what the trashcan
   of CPython is for, through which the tuples between nodes go too. */

#ifndef SMELT_CORE_H
#define SMELT_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

/* Raised when anything that `core.py` counts on changes. */
#define INTERFACE 26

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

typedef struct {
    PyObject_HEAD
    PyObject *op, *attrs, *inputs, *avals, *values, *traced, *where, *prepared, *owner, *weak;
    /* Of the last walk that came here; see plan.c. */
    PyObject *edge;
    unsigned long long walk;
    int mark, edges;
    int free; /* whether it is known to depend on no parameter; see `parameter_below` */
} Node;

/* Names that the files share; they are the library's own. */
#define SHARED __attribute__((visibility("hidden"))) extern

SHARED PyObject *LEAF, *PARAMETER, *NUMBER, *NO_ATTRS, *state, *settings, *internal_files, *is_internal, *getframe, *numbers;
SHARED PyObject *shadows, *as_seen;
SHARED PyObject *record, *number_ref, *dtype_type, *str_traced, *str_compiling, *str_check, *str_place, *str_aval;
SHARED PyObject *str_dtype, *str_recording, *str_array, *str_ref, *zero, *zero_texts[2], *empty;
SHARED PyTypeObject *array_type, *aval_type, *buffer_type, *function_type, *ndarray_type, *prepared_type;
SHARED PyObject *prepare, *as_buffer, *as_array, *step_failed;
SHARED Py_ssize_t ref_at, made_at, shape_at, dtype_at, size_at; /* offsets of slots */

/* nodes.c */
SHARED PyTypeObject NodeType;
SHARED PyObject *make_node(PyObject *op, PyObject *attrs, PyObject *inputs, PyObject *avals, PyObject *values,
                           PyObject *traced, PyObject *where, PyObject *prepared, int tracked);
SHARED PyObject *make_ref(PyObject *node, PyObject *number);
SHARED PyObject *make_leaf(PyObject *buffer, PyObject *avals, PyObject *traced);
SHARED PyObject *user_place(long depth);
SHARED PyObject *leaf(PyObject *module, PyObject *buffer);
SHARED PyObject *topological(PyObject *module, PyObject *args, PyObject *kwargs);
SHARED PyObject *parameter_below(PyObject *module, PyObject *refs);
SHARED PyObject *in_order(PyObject *outputs, PyObject *stop); /* `topological` */
SHARED void node_forget(Node *self);

/* keys.c */
SHARED PyObject *connect_keys(PyObject *module, PyObject *args);
SHARED PyObject *structure_key(PyObject *module, PyObject *args);
SHARED PyObject *dependent_on(PyObject *module, PyObject *args);
SHARED PyObject *snapshot(PyObject *module, PyObject *nodes);
SHARED PyObject *inputs_of(PyObject *module, PyObject *args);

/* sizeless.c */
SHARED PyObject *connect_sizeless(PyObject *module, PyObject *args);
SHARED PyObject *sizeless_key(PyObject *module, PyObject *structure);

/* memory.c */
SHARED PyTypeObject MemoryType;
SHARED PyObject *array_of(PyObject *buffer, PyObject *traced);
SHARED PyObject *evaluated(PyObject *module, PyObject *buffers);
SHARED PyObject *call(PyObject *module, PyObject *const *given, Py_ssize_t n_given);

/* recipes.c */
SHARED PyObject *find_recipe(PyObject *families, PyObject *key, int inside);
SHARED PyObject *connect_recipes(PyObject *module, PyObject *args);

/* plan.c */
SHARED PyTypeObject PlanType;
SHARED PyObject *plan(PyObject *module, PyObject *refs);

/* steps.c */
SHARED PyObject *connect_steps(PyObject *module, PyObject *args);
SHARED PyObject *buffer_of(PyObject *array, PyObject *aval);

/* calls.c */
SHARED PyObject *run_calls(PyObject *module, PyObject *given);
SHARED PyObject *run_on_buffers(PyObject *module, PyObject *given);

/* alike.c */
SHARED PyObject *buffers_like(PyObject *module, PyObject *const *given, Py_ssize_t n_given);
SHARED PyObject *put_like(PyObject *module, PyObject *const *given, Py_ssize_t n_given);

/* arranged.c */
SHARED PyObject *arrange(PyObject *module, PyObject *args);

/* elements.c */
SHARED PyObject *connect_elements(PyObject *module, PyObject *args);
SHARED PyObject *erf_of(PyObject *module, PyObject *args);
SHARED PyObject *erf_of_single(PyObject *module, PyObject *args);
SHARED PyObject *erfinv_of_single(PyObject *module, PyObject *args);
SHARED PyObject *shift_words(PyObject *module, PyObject *args);
SHARED PyObject *short_rows(PyObject *module, PyObject *args);

/* row_sums.c */
SHARED PyObject *row_sums(PyObject *module, PyObject *args);

/* row_extrema.c */
SHARED PyObject *row_extrema(PyObject *module, PyObject *args);

/* running.c */
SHARED PyObject *running(PyObject *module, PyObject *args);

/* halves.c */
SHARED PyObject *convert_halves(PyObject *module, PyObject *args);

/* threefry.c */
SHARED PyObject *random_words(PyObject *module, PyObject *args);

/* fourier.c */
SHARED PyObject *fourier(PyObject *module, PyObject *args);
SHARED PyObject *fourier_columns(PyObject *module, PyObject *args);
SHARED PyObject *vector_bytes(PyObject *module, PyObject *unused);

/* radix.c */
SHARED PyObject *radix(PyObject *module, PyObject *args);

/* selected.c */
SHARED PyObject *select_elements(PyObject *module, PyObject *args);
SHARED PyObject *signs(PyObject *module, PyObject *args);

/* small_matrices.c */
SHARED PyObject *small_matrices(PyObject *module, PyObject *args);

/* written_rows.c */
SHARED PyObject *write_rows(PyObject *module, PyObject *args);

/* core.c */
SHARED Py_ssize_t slot_of(PyObject *type, const char *name);

#endif
