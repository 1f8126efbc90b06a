package hostproc

// OpenRoot makes a Root of the process's root folder, which stays open.
func (h *Handles) OpenRoot(reader Reader) (*Root, error) {
	mounts, err := h.Mounts(reader)
	if err != nil {
		return nil, err
	}
	return newRoot(h.Root.File, mounts, false)
}
