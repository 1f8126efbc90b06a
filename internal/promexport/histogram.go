package promexport

import (
	"maps"
	"slices"

	dto "github.com/prometheus/client_model/go"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// fillHistogram is the accept queue's fill in both forms: classic buckets for
// the text formats, and native ones for a Prometheus that asks for protobuf.
func fillHistogram(h *model.FillHistogram) *dto.Histogram {
	out := classic(h.Classic(), h.Count, h.Sum)
	out.Schema = new(int32(model.FillSchema))
	// Only an empty queue is in the zero bucket, and the smallest ratio that
	// is not zero is far above this; a threshold above 0 also marks the
	// histogram as native before the first sample.
	out.ZeroThreshold = new(prometheus.DefNativeHistogramZeroThreshold)
	out.ZeroCount = new(h.Zero)
	out.PositiveSpan, out.PositiveDelta = sparse(h.Native())
	return out
}

// durationHistogram has classic buckets only.
func durationHistogram(h *model.DurationHistogram) *dto.Histogram {
	return classic(h.Buckets(), h.Count, h.Sum)
}

// boundedHistogram has classic buckets only, cumulative by their upper bounds.
func boundedHistogram(bounds []float64, counts []uint64, count uint64, sum float64) *dto.Histogram {
	buckets := make(map[float64]uint64, len(bounds))
	for i, bound := range bounds {
		buckets[bound] = counts[i]
	}
	return classic(buckets, count, sum)
}

// classic takes cumulative counts by upper bound; +Inf is the exposition's.
func classic(buckets map[float64]uint64, count uint64, sum float64) *dto.Histogram {
	out := &dto.Histogram{SampleCount: &count, SampleSum: &sum, Bucket: make([]*dto.Bucket, 0, len(buckets))}
	for _, bound := range slices.Sorted(maps.Keys(buckets)) {
		out.Bucket = append(out.Bucket, &dto.Bucket{UpperBound: new(bound), CumulativeCount: new(buckets[bound])})
	}
	return out
}

// sparse encodes counts by bucket index as Prometheus wants them: spans of
// consecutive indices, each with its distance from the end of the span before
// (the first: its own index), and the counts as differences.
func sparse(buckets map[int]uint64) ([]*dto.BucketSpan, []int64) {
	spans := make([]*dto.BucketSpan, 0, 1)
	deltas := make([]int64, 0, len(buckets))
	next, last := 0, int64(0)
	for _, index := range slices.Sorted(maps.Keys(buckets)) {
		if len(spans) == 0 || index != next {
			spans = append(spans, &dto.BucketSpan{Offset: new(int32(index - next)), Length: new(uint32(0))})
		}
		*spans[len(spans)-1].Length++
		count := int64(buckets[index])
		deltas = append(deltas, count-last)
		next, last = index+1, count
	}
	return spans, deltas
}
