/* libdrey-mpi: messages between ranks over MPI (ranks/transport.h). It is built where MPI's headers
 * are, and opened by a process that mpirun has started.
 *
 * Nothing blocks: a peer that hangs must not stop the one that wants to report it. */
#include "ranks/transport.h"

#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TAG = 1 };

static MPI_Comm world;
static MPI_Request sending[SLOTS];
static struct {
    MPI_Request request;
    bool is_open;
    int32_t from;
    int n_bytes;
} arriving;

static int say(int code, char why[TRANSPORT_WHY_BYTES])
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    if (code == MPI_SUCCESS)
        return 0;
    MPI_Error_string(code, text, &n);
    snprintf(why, TRANSPORT_WHY_BYTES, "%s", text);
    return -1;
}

/* Open MPI gives each of two ranks one core, unless it is asked for something else. A rank has
 * threads for all cores that the process may use which started it. */
static void use_all_cores(void)
{
    cpu_set_t all;
    if (!getenv("OMPI_MCA_orte_bound_at_launch") || getenv("OMPI_MCA_hwloc_base_binding_policy") ||
        getenv("OMPI_MCA_rmaps_base_mapping_policy") || getenv("OMPI_MCA_hwloc_base_cpu_list"))
        return;
    if (sched_getaffinity(getppid(), sizeof all, &all) == 0)
        (void)sched_setaffinity(0, sizeof all, &all);
}

static int open_mpi(int32_t *rank, int32_t *n_ranks, char host[TRANSPORT_HOST_BYTES],
                    char why[TRANSPORT_WHY_BYTES])
{
    int provided = 0, r = 0, n = 0, length = 0;
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    /* A server joins in one thread and computes in another one, never in both at a time. */
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    if (code == MPI_SUCCESS && provided < MPI_THREAD_SERIALIZED) {
        snprintf(why, TRANSPORT_WHY_BYTES, "this MPI cannot be used by one thread after another");
        return -1;
    }
    if (code == MPI_SUCCESS)
        code = MPI_Comm_dup(MPI_COMM_WORLD, &world);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_rank(world, &r);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(world, &n);
    if (code == MPI_SUCCESS)
        code = MPI_Get_processor_name(name, &length);
    for (int slot = 0; slot < SLOTS; slot++)
        sending[slot] = MPI_REQUEST_NULL;
    use_all_cores();
    *rank = r;
    *n_ranks = n;
    snprintf(host, TRANSPORT_HOST_BYTES, "%s", name);
    return say(code, why);
}

static int send_bytes(int slot, int32_t to, const void *bytes, size_t n_bytes)
{
    if (n_bytes > INT_MAX ||
        MPI_Isend(bytes, (int)n_bytes, MPI_BYTE, to, TAG, world, &sending[slot]) != MPI_SUCCESS)
        return -1;
    return 0;
}

static int sent(int slot)
{
    int done = 0;
    return MPI_Test(&sending[slot], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS ? done : -1;
}

static int receive(int32_t *from, void *bytes, size_t capacity, size_t *n_bytes)
{
    int there = 0;
    if (!arriving.is_open) {
        MPI_Status status;
        if (MPI_Iprobe(MPI_ANY_SOURCE, TAG, world, &there, &status) != MPI_SUCCESS)
            return -1;
        if (!there)
            return 0;
        MPI_Get_count(&status, MPI_BYTE, &arriving.n_bytes);
        arriving.from = status.MPI_SOURCE;
        if (arriving.n_bytes < 0 || (size_t)arriving.n_bytes > capacity ||
            MPI_Irecv(bytes, arriving.n_bytes, MPI_BYTE, arriving.from, TAG, world,
                      &arriving.request) != MPI_SUCCESS)
            return -1;
        arriving.is_open = true;
    }
    if (MPI_Test(&arriving.request, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return -1;
    if (!there)
        return 0;
    arriving.is_open = false;
    *from = arriving.from;
    *n_bytes = (size_t)arriving.n_bytes;
    return 1;
}

static void close_mpi(void)
{
    MPI_Comm_free(&world);
    MPI_Finalize();
}

static void end_all(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
}

__attribute__((visibility("default"))) const rank_transport *drey_rank_transport(void);

const rank_transport *drey_rank_transport(void)
{
    static const rank_transport mpi = {.version = TRANSPORT_VERSION,
                                       .open = open_mpi,
                                       .send = send_bytes,
                                       .sent = sent,
                                       .receive = receive,
                                       .close = close_mpi,
                                       .end_all = end_all};
    return &mpi;
}
