package waiting;

import org.springframework.data.repository.CrudRepository;

interface Orders extends CrudRepository<Order, Long> {}
