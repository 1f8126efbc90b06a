package deployed;

import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.io.InputStream;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.springframework.http.MediaType;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;

/** What applications do with a request: with a thread, and without one. */
@RestController
class Handlers {
    private final ScheduledExecutorService later = Executors.newScheduledThreadPool(1);

    @GetMapping("/hello")
    String hello(@RequestParam(name = "ms", defaultValue = "0") long ms) throws InterruptedException {
        Thread.sleep(ms);
        return "hello\n";
    }

    /** Answers later, and holds no thread until then. */
    @GetMapping("/async")
    DeferredResult<String> async(@RequestParam(name = "ms") long ms) {
        DeferredResult<String> result = new DeferredResult<>(2 * ms);
        later.schedule(() -> result.setResult("later\n"), ms, TimeUnit.MILLISECONDS);
        return result;
    }

    /** Server-sent events, one every ms, without a thread of the pool. */
    @GetMapping(path = "/events", produces = MediaType.TEXT_EVENT_STREAM_VALUE)
    SseEmitter events(@RequestParam(name = "ms") long ms) {
        SseEmitter emitter = new SseEmitter(0L);
        var ticks = later.scheduleAtFixedRate(() -> send(emitter), 0, ms, TimeUnit.MILLISECONDS);
        emitter.onCompletion(() -> ticks.cancel(false));
        emitter.onError(e -> ticks.cancel(false));
        return emitter;
    }

    private static void send(SseEmitter emitter) {
        try {
            emitter.send("tick");
        } catch (IOException | IllegalStateException e) {
            emitter.completeWithError(e);
        }
    }

    @PostMapping("/upload")
    String upload(HttpServletRequest request) throws IOException {
        byte[] buffer = new byte[1 << 16];
        long total = 0;
        InputStream body = request.getInputStream();
        for (int n = body.read(buffer); n >= 0; n = body.read(buffer)) {
            total += n;
        }
        return total + "\n";
    }
}
