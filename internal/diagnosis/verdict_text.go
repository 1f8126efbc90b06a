package diagnosis

import "time"

func seconds(d time.Duration) string { return d.String() }
