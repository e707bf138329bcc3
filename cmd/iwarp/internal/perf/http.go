package perf

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// serveHTTP serves a block that is fetched with range GETs. It writes the range in one
// piece, which is faster than http.ServeContent.
func serveHTTP(host string, w workload) (service, error) {
	l, err := peer.Listen(host, w.CC)
	if err != nil {
		return nil, err
	}
	block := peer.SourceOf(w.Size)
	s := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var first, last int
		_, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last)
		if err != nil || first < 0 || last < first || last >= len(block) {
			rw.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		h := rw.Header()
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Content-Length", strconv.Itoa(last-first+1))
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, len(block)))
		rw.WriteHeader(http.StatusPartialContent)
		_, _ = rw.Write(block[first : last+1]) // the client sees what is missing
	})}
	return serveFetches(portOf(l), func() error { return s.Serve(l) }, s.Close, http.ErrServerClosed), nil
}

func dialHTTP(addr string, w workload) (driver, error) {
	t := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return peer.Dial(addr, w.CC)
		},
		DisableCompression:  true,
		ReadBufferSize:      64 << 10,
		MaxConnsPerHost:     w.Conns * w.Depth,
		MaxIdleConnsPerHost: w.Conns * w.Depth,
	}
	d := newFetchDriver(w, func() error {
		t.CloseIdleConnections()
		return nil
	})
	c := &http.Client{Transport: t}
	header := http.Header{"Range": {fmt.Sprintf("bytes=0-%d", w.Size-1)}}
	for range w.Conns {
		d.connection(func(ctx context.Context, dst []byte) error {
			return getRange(ctx, c, "http://"+addr+"/", header, dst)
		})
	}
	return d, nil
}

func getRange(ctx context.Context, c *http.Client, url string, header http.Header, dst []byte) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	q.Header = header
	r, err := c.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close() //nolint:errcheck // it was only read
	if r.StatusCode != http.StatusPartialContent {
		return fmt.Errorf("http: %s", r.Status)
	}
	if _, err = io.ReadFull(r.Body, dst); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r.Body) // up to its end, so that the connection is reused
	return err
}
