/* Of a DataLoader, per batch: the trainer asks for it (next), its thread finds what to ask the
 * workers for (next_index), waits for one of them (try_get_data) and takes the bytes (receive); a
 * worker makes the items (items) and joins them (collated). The trainer's are each the quick way of
 * a Python method of the same meaning, in _batches.py and _receive.py. Where something is not as
 * usual it calls that method: the first time, in another segment, around the ends of epochs, for
 * batches of other kinds. */

#include "probes/python/python_loader.h"

#include <stdint.h>

#include "probes/python/account_library.h"

enum { kMostRows = 0x7fffffff };

/* _batches.py's _State: of one iterator. */
struct batches {
  struct hrx_source source;
  uint32_t is_usual, is_collated;
};

/* Of the operators; told once. */
static struct { uint32_t receive, in_order, sampler; } handles;

/* clang-format off */
#define NAMES(X) \
  X(_at) X(_next) X(_failed) X(_look) X(_rows_of) X(shape) \
  X(first) X(_headrace_receiving) X(_headrace_get) X(_headrace_find) \
  X(_task_info) X(_workers_status) X(_tasks_outstanding) \
  X(_headrace_slow___next__) X(_headrace_slow__next_index) X(_headrace_slow__try_get_data)
/* clang-format on */
#define DECLARED(name) static PyObject* name_##name;
NAMES(DECLARED)

/* 1 or 0; -1 with an exception. */
static int is_true(PyObject* object, PyObject* name) {
  PyObject* value = PyObject_GetAttr(object, name);
  const int truth = value ? PyObject_IsTrue(value) : -1;
  Py_DecRef(value);
  return truth;
}

static int is_done(PyObject* result) {
  Py_DecRef(result);
  return result != NULL;
}

static PyObject* call_as(PyObject* callable, PyObject* const* arguments, Py_ssize_t count,
                         PyObject* names) {
  const Py_ssize_t named_count = names ? PyObject_Size(names) : 0;
  PyObject *all, *named = NULL, *result = NULL;
  Py_ssize_t i;
  int failed = 0;
  if (count == 0 && named_count == 0) return PyObject_CallFunctionObjArgs(callable, NULL);
  all = PyTuple_New(count);
  if (named_count > 0) named = PyDict_New();
  failed = !all || (named_count > 0 && !named);
  for (i = 0; !failed && i < count; i++) {
    Py_IncRef(arguments[i]);
    failed = PyTuple_SetItem(all, i, arguments[i]) != 0;
  }
  for (i = 0; !failed && i < named_count; i++) {
    failed = PyDict_SetItem(named, PyTuple_GetItem(names, i), arguments[count + i]) != 0;
  }
  if (!failed) result = PyObject_Call(callable, all, named);
  Py_DecRef(all);
  Py_DecRef(named);
  return result;
}

/* ---- The trainer's side ---- */

enum { kAskPython = -1, kRaised = -2 }; /* in the place of a number of rows */

static long first_dimension(PyObject* value) {
  PyObject* const shape = PyObject_GetAttr(value, name_shape);
  PyObject* const dimension = shape ? PySequence_GetItem(shape, 0) : NULL;
  const long rows = dimension ? PyLong_AsLong(dimension) : -1;
  Py_DecRef(dimension);
  Py_DecRef(shape);
  if (PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return kRaised; /* an interruption */
    PyErr_Clear();
    return kAskPython;
  }
  return rows >= 0 && rows <= kMostRows ? rows : kAskPython;
}

static int is_type(PyObject* type, const char* wanted) { return (const char*)type == wanted; }

static int is_single(PyObject* value) {
  PyObject* const type = PyObject_Type(value);
  const int is = is_type(type, &PyLong_Type) || is_type(type, &PyFloat_Type) ||
                 is_type(type, &PyBool_Type) || is_type(type, &PyUnicode_Type) ||
                 is_type(type, &PyBytes_Type) || is_type(type, &PyByteArray_Type);
  Py_DecRef(type);
  return is;
}

/* As rows_of() in _batches.py. */
static long rows_of(PyObject* batch, int is_collated) {
  PyObject* const type = PyObject_Type(batch);
  const int is_list = is_type(type, &PyList_Type), is_tuple = is_type(type, &PyTuple_Type);
  PyObject* first;
  Py_ssize_t count;
  long rows = kAskPython;
  Py_DecRef(type);
  if (!is_list && !is_tuple) return first_dimension(batch);
  count = PyObject_Size(batch);
  if (count <= 0 || count > kMostRows) return count == 0 ? 0 : kAskPython;
  first = PySequence_GetItem(batch, 0);
  if (first && (is_single(first) || !(is_collated || is_tuple))) {
    rows = (long)count;
  } else if (first && PyObject_Size(first) >= 0) {
    rows = first_dimension(first);
  } else if (PyErr_ExceptionMatches(PyExc_Exception)) {
    PyErr_Clear();
  } else {
    rows = kRaised;
  }
  Py_DecRef(first);
  return rows;
}

/* What is raised on the way takes the place of the exception that is set, which stays so else. */
static void has_failed(PyObject* self) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (is_done(PyObject_CallMethodObjArgs(self, name__failed, NULL))) {
    PyErr_Restore(type, value, traceback);
    return;
  }
  Py_DecRef(type);
  Py_DecRef(value);
  Py_DecRef(traceback);
}

/* Of a request that has been asked for: from what is inside to the batch and its rows. */
static PyObject* take(PyObject* self, const struct batches* b, int told, long* rows) {
  PyObject *next = NULL, *batch = NULL;
  if (told != HRX_LOOK || is_done(PyObject_CallMethodObjArgs(self, name__look, NULL))) {
    next = PyObject_GetAttr(self, name__next);
  }
  if (next) batch = PyObject_CallFunctionObjArgs(next, NULL);
  Py_DecRef(next);
  *rows = batch ? rows_of(batch, b->is_collated != 0) : kRaised;
  if (*rows == kAskPython) {
    PyObject* const number = PyObject_CallMethodObjArgs(self, name__rows_of, batch, NULL);
    *rows = number ? PyLong_AsLong(number) : kRaised;
    Py_DecRef(number);
  }
  if (*rows >= 0) return batch;
  has_failed(self);
  Py_DecRef(batch);
  return NULL;
}

static PyObject* next_batch(PyObject* self, PyObject* none) {
  PyObject* const at = PyObject_GetAttr(self, name__at);
  struct batches* const b = at ? (struct batches*)PyLong_AsVoidPtr(at) : NULL;
  PyObject* batch;
  long rows;
  int told;
  (void)none;
  Py_DecRef(at);
  if (!b) return NULL;
  told = b->is_usual ? hrx_ask(&b->source) : 1;
  if (told == 1) return PyObject_CallMethodObjArgs(self, name__headrace_slow___next__, NULL);
  Py_IncRef(self); /* whose it is may let it go meanwhile */
  batch = take(self, b, told, &rows);
  if (batch && hrx_got(&b->source, (uint32_t)rows) &&
      !is_done(PyObject_CallMethodObjArgs(self, name__look, NULL))) {
    Py_DecRef(batch);
    batch = NULL;
  }
  Py_DecRef(self);
  return batch;
}

static PyObject* next_index(PyObject* self, PyObject* none) {
  PyObject *find, *indices;
  (void)none;
  if (hrx_begin(handles.sampler)) {
    return PyObject_CallMethodObjArgs(self, name__headrace_slow__next_index, NULL);
  }
  find = PyObject_GetAttr(self, name__headrace_find);
  indices = find ? PyObject_CallFunctionObjArgs(find, NULL) : NULL;
  Py_DecRef(find);
  if (indices) {
    hrx_end_one(handles.sampler, 0);
  } else {
    hrx_end(handles.sampler);
  }
  return indices;
}

/* Whether batches came before their turn and are kept; -1: ask early_batches() in _receive.py. */
static int is_any_early(PyObject* iterator) {
  PyObject* const tasks = PyObject_GetAttr(iterator, name__task_info);
  PyObject* const outstanding = tasks ? PyObject_GetAttr(iterator, name__tasks_outstanding) : NULL;
  PyObject* const status = outstanding ? PyObject_GetAttr(iterator, name__workers_status) : NULL;
  PyObject* const no = status ? PyBool_FromLong(0) : NULL;
  int is_early = -1;
  if (no && PySequence_Contains(status, no) == 0) {
    is_early = PyObject_Size(tasks) > PyLong_AsLong(outstanding);
  }
  if (PyErr_Occurred()) {
    PyErr_Clear();
    is_early = -1;
  }
  Py_DecRef(no);
  Py_DecRef(status);
  Py_DecRef(outstanding);
  Py_DecRef(tasks);
  return is_early;
}

static PyObject* try_get_data(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                              PyObject* names) {
  PyObject* const receiving = PyObject_GetAttr(self, name__headrace_receiving);
  const int is_first = receiving ? is_true(receiving, name_first) : -1;
  const int is_early = is_first == 0 ? is_any_early(self) : -1;
  const uint32_t handle = is_early > 0 ? handles.in_order : handles.receive;
  int is_usual;
  PyObject *get, *got;
  Py_DecRef(receiving);
  if (is_first < 0) return NULL;
  is_usual = is_early >= 0 && !hrx_wait_in(handle);
  get = PyObject_GetAttr(self, is_usual ? name__headrace_get : name__headrace_slow__try_get_data);
  got = get ? call_as(get, arguments, count, names) : NULL;
  Py_DecRef(get);
  if (is_usual) hrx_wait_in_end(handle);
  return got;
}

/* self: (receive, the Python function, handles of the wait and of unpickling, what binds the
 * latter). */
static PyObject* receive(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  const uint32_t waits = (uint32_t)PyLong_AsLong(PyTuple_GetItem(self, 2));
  const uint32_t unpickles = (uint32_t)PyLong_AsLong(PyTuple_GetItem(self, 3));
  PyObject* data;
  Py_ssize_t size;
  if (count > 0 || hrx_begin(waits)) {
    return call_as(PyTuple_GetItem(self, 1), arguments, count, NULL);
  }
  data = PyObject_CallFunctionObjArgs(PyTuple_GetItem(self, 0), NULL);
  size = data ? PyObject_Size(data) : -1;
  if (size > kMostRows) { /* more than fits into a C int */
    hrx_count(waits, 0, 0, (uint64_t)size, 0);
    size = 0;
  }
  /* Unpickling is left with the wait around it, once the queue has returned. */
  if (size >= 0 && hrx_pass_on(waits, unpickles, (uint32_t)size)) {
    if (is_done(PyObject_CallFunctionObjArgs(PyTuple_GetItem(self, 4), NULL))) {
      hrx_pass_on(waits, unpickles, (uint32_t)size);
    } else {
      size = -1;
    }
  }
  if (size >= 0) return data;
  Py_DecRef(data);
  return NULL;
}

/* ---- A worker's side ---- */

/* items(dataset, indices, handle): [dataset[index] for index in indices], inside the operator,
 * which was entered for the first and is left here: every item is one element of it. */
static PyObject* items(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  PyObject *list, *indices, *index;
  uint32_t handle;
  Py_ssize_t got_count = 0;
  int failed, all_made;
  (void)self;
  if (!hrx_is_count(count, 3) || !hrx_number_of(arguments[2], &handle)) return NULL;
  list = PyList_New(0);
  indices = list ? PyObject_GetIter(arguments[1]) : NULL;
  failed = !indices;
  while (!failed && (index = PyIter_Next(indices)) != NULL) {
    PyObject* item;
    if (got_count++ > 0) hrx_next_one(handle);
    item = PyObject_GetItem(arguments[0], index);
    failed = !item || PyList_Append(list, item) != 0;
    Py_DecRef(item);
    Py_DecRef(index);
  }
  all_made = !failed && got_count > 0;
  if (!failed && PyErr_Occurred()) failed = 1; /* by the indices */
  Py_DecRef(indices);
  if (!all_made) {
    hrx_end(handle);
  } else {
    hrx_end_one(handle, 1);
  }
  if (!failed) return list;
  Py_DecRef(list);
  return NULL;
}

/* collated(collate_fn, samples, collate, is_batched, is_in_worker): inside the operator, which is
 * left here. */
static PyObject* collated(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  PyObject* batch;
  Py_ssize_t rows = 1;
  uint32_t handle;
  int is_batched, is_in_worker;
  (void)self;
  if (!hrx_is_count(count, 5) || !hrx_number_of(arguments[2], &handle)) return NULL;
  batch = PyObject_CallFunctionObjArgs(arguments[0], arguments[1], NULL);
  is_batched = batch ? PyObject_IsTrue(arguments[3]) : -1;
  is_in_worker = is_batched < 0 ? -1 : PyObject_IsTrue(arguments[4]);
  if (is_in_worker < 0) {
    hrx_end(handle);
    Py_DecRef(batch);
    return NULL;
  }
  if (is_batched) rows = PyObject_Size(arguments[1]);
  if (rows < 0) { /* it has no length */
    PyErr_Clear();
    rows = 1;
  }
  if (rows > kMostRows) rows = kMostRows;
  if (is_in_worker) {
    hrx_end_idle(handle, (uint32_t)rows);
  } else {
    hrx_end_one(handle, (uint32_t)rows);
  }
  return batch;
}

/* ---- What Python calls ---- */

static PyMethodDef methods[] = {
    {"__next__", (PyCFunction)(void*)next_batch, METH_NOARGS, NULL},
    {"_next_index", (PyCFunction)(void*)next_index, METH_NOARGS, NULL},
    {"_try_get_data", (PyCFunction)(void*)try_get_data, METH_FASTCALL | METH_KEYWORDS, NULL}};
static PyMethodDef receives = {"receive", receive, METH_FASTCALL, NULL};

/* method(class, name): the method of that name above, for instances of the class. */
static PyObject* method(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  size_t i;
  (void)self;
  for (i = 0; count == 2 && i < sizeof(methods) / sizeof(methods[0]); i++) {
    if (PyUnicode_CompareWithASCIIString(arguments[1], methods[i].name) == 0) {
      return PyDescr_NewMethod(arguments[0], &methods[i]);
    }
  }
  PyErr_SetString(PyExc_TypeError, "no such method");
  return NULL;
}

/* receiver(receive, slow, wait, unpickle, bind): what stands for `receive`. */
static PyObject* receiver(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  PyObject *all, *made;
  Py_ssize_t i;
  int failed = 0;
  (void)self;
  if (!hrx_is_count(count, 5)) return NULL;
  all = PyTuple_New(count);
  for (i = 0; all && !failed && i < count; i++) {
    Py_IncRef(arguments[i]);
    failed = PyTuple_SetItem(all, i, arguments[i]) != 0;
  }
  made = all && !failed ? PyCFunction_NewEx(&receives, all, NULL) : NULL;
  Py_DecRef(all);
  return made;
}

/* loader_handles(receive, in_order, sampler) */
static PyObject* loader_handles(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  uint32_t* const all[] = {&handles.receive, &handles.in_order, &handles.sampler};
  Py_ssize_t i;
  (void)self;
  if (!hrx_is_count(count, 3)) return NULL;
  for (i = 0; i < count; i++) {
    if (!hrx_number_of(arguments[i], all[i])) return NULL;
  }
  return PyBool_FromLong(1);
}

static PyMethodDef calls[] = {{"hrx_method", method, METH_FASTCALL, NULL},
                              {"hrx_items", items, METH_FASTCALL, NULL},
                              {"hrx_collated", collated, METH_FASTCALL, NULL},
                              {"hrx_receiver", receiver, METH_FASTCALL, NULL},
                              {"hrx_loader_handles", loader_handles, METH_FASTCALL, NULL}};

int hrx_is_python_for_loaders(void) {
  return PyDescr_NewMethod && PyObject_GetAttr && PyObject_GetItem && PyObject_GetIter &&
         PyObject_Type && PyObject_CallFunctionObjArgs && PyObject_CallMethodObjArgs &&
         PyObject_Call && PyObject_Size && PyObject_IsTrue && PyIter_Next && PyList_New &&
         PyList_Append && PyTuple_New && PyTuple_GetItem && PyTuple_SetItem && PyDict_New &&
         PyDict_SetItem && PySequence_GetItem && PySequence_Contains && PyErr_Clear &&
         PyErr_ExceptionMatches && &PyExc_Exception && PyErr_Fetch && PyErr_Restore &&
         PyBool_FromLong && PyUnicode_InternFromString && PyUnicode_CompareWithASCIIString &&
         Py_IncRef && &PyList_Type && &PyTuple_Type && &PyLong_Type && &PyFloat_Type &&
         &PyBool_Type && &PyUnicode_Type && &PyBytes_Type && &PyByteArray_Type;
}

int hrx_python_loader_calls(PyObject* into) {
  size_t i;
  /* Each time: those of an interpreter that has ended are gone. */
#define INTERNED(name) \
  if (!(name_##name = PyUnicode_InternFromString(#name))) return 1;
  NAMES(INTERNED)
  for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
    if (hrx_add_call(into, &calls[i])) return 1;
  }
  return 0;
}
