/* One-sided operations of UCX between two processes: prints GB/s.
 *
 *	UCX_TLS=tcp UCX_NET_DEVICES=lo ucx put|get OCTETS SECONDS DEPTH
 */
#include "common.h"

#include <ucp/api/ucp.h>

static ucp_context_h context;
static ucp_worker_h worker;

static void check(ucs_status_t s, const char *what)
{
	if (s != UCS_OK)
		die(what, ucs_status_string(s));
}

static void init(void)
{
	ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_RMA };
	ucp_worker_params_t single = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE,
	};
	ucp_config_t *config;

	check(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
	check(ucp_init(&params, config, &context), "ucp_init");
	ucp_config_release(config);
	check(ucp_worker_create(context, &single, &worker), "ucp_worker_create");
}

/* What the server tells: two lengths and an address, then the octets of both. */
struct hello {
	uint64_t address_len, key_len, buffer;
};

static void server(const struct options *o, int fd)
{
	ucp_mem_map_params_t map = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
		.address = buffer(o->size),
		.length = o->size,
	};
	struct hello h = { .buffer = (uint64_t)map.address };
	ucp_address_t *address;
	ucp_mem_h mem;
	void *key;

	init();
	check(ucp_mem_map(context, &map, &mem), "ucp_mem_map");
	check(ucp_rkey_pack(context, mem, &key, &h.key_len), "ucp_rkey_pack");
	check(ucp_worker_get_address(worker, &address, &h.address_len), "ucp_worker_get_address");
	send_all(fd, &h, sizeof h);
	send_all(fd, address, h.address_len);
	send_all(fd, key, h.key_len);
	for (unsigned turn = 0; !finished(fd, turn); turn++)
		ucp_worker_progress(worker);
}

/* finish waits for one request, which may have been complete at once. */
static void finish(void *request)
{
	ucs_status_t s;

	if (UCS_PTR_IS_ERR(request))
		check(UCS_PTR_STATUS(request), "request");
	if (!request)
		return;
	while ((s = ucp_request_check_status(request)) == UCS_INPROGRESS)
		ucp_worker_progress(worker);
	ucp_request_free(request);
	check(s, "request");
}

struct target {
	ucp_ep_h ep;
	ucp_rkey_h key;
	uint64_t buffer;
	void *local;
};

/* stream keeps depth operations under way for so long, until all of them have taken
 * effect at the server, and returns octets per second. */
static double stream(const struct options *o, const struct target *t, double seconds)
{
	ucp_request_param_t none = { 0 };
	void *requests[MAX_DEPTH] = { 0 };
	double start = now(), end = start + seconds;
	size_t n = 0;

	for (; now() < end; n++) {
		void **slot = &requests[n % o->depth];

		finish(*slot);
		*slot = o->put ? ucp_put_nbx(t->ep, t->local, o->size, t->buffer, t->key, &none)
			       : ucp_get_nbx(t->ep, t->local, o->size, t->buffer, t->key, &none);
		ucp_worker_progress(worker);
	}
	for (int i = 0; i < o->depth; i++)
		finish(requests[i]);
	finish(ucp_ep_flush_nbx(t->ep, &none));
	return n * o->size / (now() - start);
}

static double client(const struct options *o, int fd)
{
	ucp_ep_params_t params = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS };
	struct target t = { .local = buffer(o->size) };
	struct hello h;
	void *address, *key;

	init();
	recv_all(fd, &h, sizeof h);
	address = buffer(h.address_len);
	key = buffer(h.key_len);
	recv_all(fd, address, h.address_len);
	recv_all(fd, key, h.key_len);
	params.address = address;
	check(ucp_ep_create(worker, &params, &t.ep), "ucp_ep_create");
	check(ucp_ep_rkey_unpack(t.ep, key, &t.key), "ucp_ep_rkey_unpack");
	t.buffer = h.buffer;
	stream(o, &t, WARM_SECONDS);
	return stream(o, &t, o->seconds);
}

int main(int argc, char **argv)
{
	struct options o = parse(argc, argv);

	return run(&o, server, client);
}
