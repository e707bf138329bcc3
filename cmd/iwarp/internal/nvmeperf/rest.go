package nvmeperf

func (b *bench) flushes() error { return nil }
func (b *bench) queues() error  { return nil }
func (b *bench) incast() error  { return nil }
func (b *bench) hostile() error { return nil }
