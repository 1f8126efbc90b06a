package draws;

import java.io.InputStream;
import java.io.OutputStream;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.async.DeferredResult;

/** The requests of Work, in any Spring Boot from 2.7 to 4: without the Servlet API, whose name differs. */
@RestController
class Handlers {
    private final ScheduledExecutorService later = Executors.newScheduledThreadPool(1);

    @RequestMapping("/work.jsp")
    void work(@RequestParam Map<String, String> asked, InputStream body, OutputStream out) throws Exception {
        Work.run(asked, body, () -> {
            out.write('x');
            out.flush();
        });
    }

    @GetMapping("/later.jsp")
    DeferredResult<String> later(@RequestParam(name = "ms") long ms) {
        DeferredResult<String> result = new DeferredResult<>(2 * ms + 1000);
        later.schedule(() -> result.setResult("x"), ms, TimeUnit.MILLISECONDS);
        return result;
    }
}
