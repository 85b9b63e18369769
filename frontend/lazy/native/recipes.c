/* Recipes for all sizes, bound to sizes: what `family_of`, `Family.find` and `bound` of recipes.py do. */

#include "core.h"

/* As in recipes.py and in build.py. */
#define MOST_LITERAL 8
#define MOST_ELEMENTS (1LL << 60)
/* Sizes of one call, and values of one recipe, above which it is left to Python. */
#define MOST_SIZES 64
#define MOST_VALUES 256

static PyObject *counter, *size_type, *str_recipes;
static double seconds_of_op;

/* Take what `recipes.py` has. */
PyObject *connect_recipes(PyObject *module, PyObject *args)
{
    PyObject *function, *numbers, *size;
    if (!PyArg_ParseTuple(args, "OOOd:connect_recipes", &function, &numbers, &size, &seconds_of_op))
        return NULL;
    Py_XSETREF(record, Py_NewRef(function)); /* for as long as the process lives */
    Py_XSETREF(counter, Py_NewRef(numbers));
    Py_XSETREF(size_type, Py_NewRef(size));
    if (str_recipes == NULL && (str_recipes = PyUnicode_InternFromString("recipes")) == NULL)
        return NULL;
    Py_RETURN_NONE;
}

typedef struct {
    long long sizes[MOST_SIZES];
    int n;
} Sizes;

/* The name of a size, new: -1, -2, ... in order of appearance; NULL where there are too many, or with an error. */
static PyObject *name_of(Sizes *known, long long size)
{
    int i = 0;
    while (i < known->n && known->sizes[i] != size)
        i++;
    if (i == MOST_SIZES)
        return NULL;
    if (i == known->n)
        known->sizes[known->n++] = size;
    return PyLong_FromLong(-1 - i);
}

/* A shape with names for its sizes, new. */
static PyObject *named(PyObject *shape, Sizes *known)
{
    Py_ssize_t n = PyTuple_GET_SIZE(shape);
    PyObject *found = PyTuple_New(n);
    for (Py_ssize_t i = 0; found != NULL && i < n; i++) {
        PyObject *d = PyTuple_GET_ITEM(shape, i);
        long long extent = PyLong_CheckExact(d) ? PyLong_AsLongLong(d) : -1;
        PyObject *name = extent < 0 ? NULL : extent < 2 ? Py_NewRef(d) : name_of(known, extent);
        if (name == NULL)
            Py_CLEAR(found);
        else
            PyTuple_SET_ITEM(found, i, name);
    }
    return found;
}

/* The key of a call's family, new; NULL where there is none, or with an error. */
static PyObject *family_key(PyObject *key, int inside, Sizes *known)
{
    Py_ssize_t n = PyTuple_GET_SIZE(key), i = 0;
    PyObject *found = PyTuple_New(n + 1);
    if (found == NULL)
        return NULL;
    PyTuple_SET_ITEM(found, 0, Py_NewRef(inside ? Py_True : Py_False));
    for (; i + 1 < n; i += 2) {
        PyObject *kind = PyTuple_GET_ITEM(key, i), *value = PyTuple_GET_ITEM(key, i + 1), *name;
        if (PyTuple_CheckExact(kind)) { /* a shape and its dtype */
            if ((name = named(kind, known)) == NULL)
                goto none;
            PyTuple_SET_ITEM(found, i + 1, name);
            PyTuple_SET_ITEM(found, i + 2, Py_NewRef(value));
            continue;
        }
        if (kind == (PyObject *)&PyLong_Type && PyLong_CheckExact(value)) {
            int overflow;
            long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
            if (overflow > 0)
                goto none;
            if (!overflow && number > MOST_LITERAL) {
                if ((name = name_of(known, number)) == NULL)
                    goto none;
                PyTuple_SET_ITEM(found, i + 1, Py_NewRef(size_type));
                PyTuple_SET_ITEM(found, i + 2, name);
                continue;
            }
        }
        PyTuple_SET_ITEM(found, i + 1, Py_NewRef(kind));
        PyTuple_SET_ITEM(found, i + 2, Py_NewRef(value));
    }
    if (i < n)
        PyTuple_SET_ITEM(found, n, Py_NewRef(PyTuple_GET_ITEM(key, i)));
    if (known->n)
        return found;
none:
    Py_DECREF(found);
    return NULL;
}

/* What is bound leads to ops, attributes and types, so to no cycle. Python's collector would look at what thousands of
   sizes have left behind, again and again. */
static PyObject *untracked(PyObject *made)
{
    if (made != NULL)
        PyObject_GC_UnTrack(made);
    return made;
}

/* The type of a shape, new, and how many elements that has; NULL where it is none, or with an error. */
static PyObject *aval_of(PyObject *shape, PyObject *dtype, long long *elements)
{
    long long size = 1;
    if (!PyTuple_CheckExact(shape))
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); i++) {
        PyObject *d = PyTuple_GET_ITEM(shape, i);
        long long extent = PyLong_CheckExact(d) ? PyLong_AsLongLong(d) : -1;
        if (extent < 0 || __builtin_mul_overflow(size, extent, &size) || size >= MOST_ELEMENTS)
            return NULL;
    }
    *elements = size;
    if (!size || PyTuple_GET_SIZE(shape) > 16) /* there are rules for these */
        return PyObject_CallFunctionObjArgs((PyObject *)aval_type, shape, dtype, NULL);
    PyObject *count = PyLong_FromLongLong(size), *found = count == NULL ? NULL : aval_type->tp_alloc(aval_type, 0);
    if (found == NULL) {
        Py_XDECREF(count);
        return NULL;
    }
    SLOT(found, shape_at) = Py_NewRef(shape);
    SLOT(found, dtype_at) = Py_NewRef(dtype);
    SLOT(found, size_at) = count;
    return untracked(found);
}

#define ITEM(tuple, i) PyTuple_GET_ITEM(tuple, i)
#define NUMBER_AT(tuple, i) PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i))

/* What computes a node of so many elements, new. */
static PyObject *prepared_call(PyObject *call, PyObject *op, PyObject *outputs, long long size)
{
    Py_ssize_t extra_at = NUMBER_AT(call, 3), product_at = NUMBER_AT(call, 8), count_at = NUMBER_AT(call, 9);
    double work = (double)size * PyFloat_AsDouble(ITEM(call, 6)), seconds = PyFloat_AsDouble(ITEM(call, 7));
    double count = count_at < 0 ? (double)size : PyFloat_AsDouble(ITEM(outputs, count_at));
    if (product_at >= 0) {
        double product = PyFloat_AsDouble(ITEM(outputs, product_at));
        work = product > work ? product : work;
        count = count_at < 0 || product > count ? product : count;
    }
    seconds = seconds_of_op + count * seconds;
    if (PyErr_Occurred())
        return NULL;
    PyObject *found = prepared_type->tp_alloc(prepared_type, 10);
    if (found == NULL)
        return NULL;
    PyTuple_SET_ITEM(found, 0, Py_NewRef(ITEM(call, 0)));
    PyTuple_SET_ITEM(found, 1, Py_NewRef(ITEM(call, 1)));
    PyTuple_SET_ITEM(found, 2, Py_NewRef(extra_at < 0 ? ITEM(call, 2) : ITEM(outputs, extra_at)));
    PyTuple_SET_ITEM(found, 3, Py_NewRef(ITEM(call, 4)));
    PyTuple_SET_ITEM(found, 4, Py_NewRef(ITEM(call, 5)));
    PyTuple_SET_ITEM(found, 5, PyFloat_FromDouble(work));
    PyTuple_SET_ITEM(found, 6, PyFloat_FromDouble(seconds));
    PyTuple_SET_ITEM(found, 7, PyIter_Next(counter));
    PyTuple_SET_ITEM(found, 8, Py_NewRef(op));
    PyTuple_SET_ITEM(found, 9, PyLong_FromLong(1));
    if (PyErr_Occurred())
        Py_CLEAR(found);
    return untracked(found);
}

/* A node of a recipe, new. `of`: how many elements each value has, `n_values` of them so far. */
static PyObject *bound_step(PyObject *step, PyObject *outputs, PyObject **avals, const long long *elements, long long *of,
                            int *n_values)
{
    PyObject *op = ITEM(step, 0), *inputs = ITEM(step, 3), *numbers = ITEM(step, 4), *call = ITEM(step, 6);
    Py_ssize_t attrs_at = NUMBER_AT(step, 2), n = PyTuple_GET_SIZE(numbers);
    PyObject *prepared = Py_NewRef(Py_None), *found = NULL;
    PyObject *results = untracked(PyTuple_New(n)), *memo = untracked(PyList_New(1));
    long long size = 0;
    if (results == NULL || memo == NULL || *n_values + n > MOST_VALUES)
        goto done;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); i++) {
        long long other = of[NUMBER_AT(inputs, i)];
        size = other > size ? other : size;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t at = NUMBER_AT(numbers, i);
        PyTuple_SET_ITEM(results, i, Py_NewRef(avals[at]));
        of[(*n_values)++] = elements[at];
        size = elements[at] > size ? elements[at] : size;
    }
    if (call != Py_None)
        Py_SETREF(prepared, prepared_call(call, op, outputs, size));
    if (prepared == NULL)
        goto done;
    PyList_SET_ITEM(memo, 0, Py_NewRef(prepared));
    found = untracked(
        PyTuple_Pack(6, op, attrs_at < 0 ? ITEM(step, 1) : ITEM(outputs, attrs_at), inputs, results, ITEM(step, 5), memo));
done:
    Py_XDECREF(prepared);
    Py_XDECREF(results);
    Py_XDECREF(memo);
    return found;
}

/* A recipe for what `run` gave, new; NULL where there is none, or with an error. */
static PyObject *bound(PyObject *sized, PyObject *outputs)
{
    PyObject *types = ITEM(sized, 1), *steps = ITEM(sized, 2), *inputs = ITEM(sized, 4), *avals[MOST_VALUES];
    long long elements[MOST_VALUES], of[MOST_VALUES];
    Py_ssize_t n = PyList_GET_SIZE(steps);
    int n_values = 0, count = 0;
    PyObject *made = NULL, *found = NULL;
    if (!PyTuple_CheckExact(outputs) || PyList_GET_SIZE(types) > MOST_VALUES || PyList_GET_SIZE(inputs) > MOST_VALUES)
        return NULL;
    for (; count < PyList_GET_SIZE(types); count++) {
        PyObject *type = PyList_GET_ITEM(types, count);
        if (PyTuple_CheckExact(type))
            avals[count] = aval_of(ITEM(outputs, NUMBER_AT(type, 0)), ITEM(type, 1), &elements[count]);
        else {
            avals[count] = Py_NewRef(type);
            elements[count] = PyLong_AsLongLong(SLOT(type, size_at));
        }
        if (avals[count] == NULL)
            goto done;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); i++) {
        Py_ssize_t at = PyLong_AsSsize_t(PyList_GET_ITEM(inputs, i));
        of[n_values++] = at < 0 ? 1 : elements[at];
    }
    made = untracked(PyList_New(n));
    for (Py_ssize_t i = 0; made != NULL && i < n; i++) {
        PyObject *step = bound_step(PyList_GET_ITEM(steps, i), outputs, avals, elements, of, &n_values);
        if (step == NULL)
            Py_CLEAR(made);
        else
            PyList_SET_ITEM(made, i, step);
    }
    if (made != NULL)
        found = untracked(PyTuple_Pack(2, made, ITEM(sized, 3)));
done:
    Py_XDECREF(made);
    while (count)
        Py_DECREF(avals[--count]);
    return found;
}

/* The recipe for a key by those for all sizes, new; NULL where that is not known, or with an error. */
PyObject *find_recipe(PyObject *families, PyObject *key, int inside)
{
    Sizes known = {.n = 0};
    PyObject *found = NULL, *family_is, *name, *recipes, *sizes[MOST_SIZES + 1];
    if (!PyDict_GET_SIZE(families) || (name = family_key(key, inside, &known)) == NULL)
        return NULL;
    family_is = PyDict_GetItemWithError(families, name);
    recipes = family_is == NULL ? NULL : PyObject_GetAttr(family_is, str_recipes);
    Py_DECREF(name);
    if (recipes == NULL || !PyList_CheckExact(recipes) || !PyList_GET_SIZE(recipes)) {
        Py_XDECREF(recipes);
        return NULL;
    }
    int n = 0;
    for (; n < known.n; n++)
        if ((sizes[n + 1] = PyLong_FromLongLong(known.sizes[n])) == NULL)
            break;
    for (Py_ssize_t i = 0; n == known.n && found == NULL && !PyErr_Occurred() && i < PyList_GET_SIZE(recipes); i++) {
        PyObject *sized = Py_NewRef(PyList_GET_ITEM(recipes, i));
        PyObject *outputs = PyObject_Vectorcall(ITEM(sized, 0), sizes + 1, (size_t)n | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        if (outputs == NULL && PyErr_ExceptionMatches(PyExc_ArithmeticError))
            PyErr_Clear();
        if (outputs != NULL && outputs != Py_None)
            found = bound(sized, outputs);
        Py_XDECREF(outputs);
        Py_DECREF(sized);
    }
    while (n)
        Py_DECREF(sizes[n--]);
    Py_DECREF(recipes);
    return found;
}
