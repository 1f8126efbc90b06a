package loadtest

import "math"

// Difference is between the same figure of two tests, each run once or several times.
type Difference struct {
	Before, Now float64 // means
	// Spread is how far the means may be apart by the runs' own variation (95 %): a
	// difference of less is noise. Known is false where neither test was run twice.
	Spread float64
	Known  bool
}

// Real reports whether the difference is more than noise.
func (d Difference) Real() bool { return d.Known && math.Abs(d.Now-d.Before) > d.Spread }

// Compare compares a figure by the runs' own variation: with several runs of both tests by Welch's
// interval, with several of one by where another run of it would be.
func Compare(before, now []float64) Difference {
	b, n := momentsOf(before), momentsOf(now)
	d := Difference{Before: b.mean, Now: n.mean}
	switch {
	case b.n > 1 && n.n > 1:
		vb, vn := b.variance/b.n, n.variance/n.n
		df := b.n + n.n - 2
		if vb+vn > 0 { // Welch–Satterthwaite
			df = (vb + vn) * (vb + vn) / (vb*vb/(b.n-1) + vn*vn/(n.n-1))
		}
		d.Known, d.Spread = true, student(df)*math.Sqrt(vb+vn)
	case b.n > 1:
		d.Known, d.Spread = true, student(b.n-1)*math.Sqrt(b.variance*(1+1/b.n))
	case n.n > 1:
		d.Known, d.Spread = true, student(n.n-1)*math.Sqrt(n.variance*(1+1/n.n))
	}
	return d
}

type moments struct{ n, mean, variance float64 }

func momentsOf(values []float64) (m moments) {
	m.n = float64(len(values))
	for _, v := range values {
		m.mean += v / m.n
	}
	for _, v := range values {
		m.variance += (v - m.mean) * (v - m.mean) / math.Max(1, m.n-1)
	}
	return m
}

// MeanError is the mean of values, and how far it may be off by their own variation (95 %).
func MeanError(values []float64) (mean, err float64) {
	m := momentsOf(values)
	if m.n < 2 {
		return m.mean, 0
	}
	return m.mean, student(m.n-1) * math.Sqrt(m.variance/m.n)
}

// student is the two-sided 95 % quantile of Student's distribution, of the degrees of freedom
// rounded down.
func student(df float64) float64 {
	table := []float64{12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09}
	switch {
	case df < 1:
		return table[0]
	case df >= 60:
		return 2
	case int(df) > len(table):
		return 2.06
	}
	return table[int(df)-1]
}
