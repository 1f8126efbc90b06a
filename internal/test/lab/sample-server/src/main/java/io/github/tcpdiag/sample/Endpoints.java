package io.github.tcpdiag.sample;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Handlers that hold their thread in each of the ways a real one does. */
@RestController
class Endpoints {
    private static final int CHUNK = 64 * 1024;

    @GetMapping("/hello")
    String hello(@RequestParam(name = "ms", defaultValue = "0") long ms) throws InterruptedException {
        Thread.sleep(ms);
        return "hello\n";
    }

    /** Leaves the body, if there is one, unread in the socket while it works. */
    @PostMapping("/hello")
    String helloUnread(HttpServletRequest request) throws InterruptedException {
        return hello(millis(request));
    }

    /** Reads the whole body, then works. */
    @PostMapping("/upload")
    String upload(HttpServletRequest request) throws IOException, InterruptedException {
        byte[] buffer = new byte[CHUNK];
        long total = 0;
        InputStream body = request.getInputStream();
        for (int n = body.read(buffer); n >= 0; n = body.read(buffer)) {
            total += n;
        }
        Thread.sleep(millis(request));
        return total + "\n";
    }

    /** Writes as fast as the client reads. */
    @GetMapping("/download")
    void download(@RequestParam(name = "bytes", defaultValue = "1048576") long bytes, HttpServletResponse response)
            throws IOException {
        byte[] buffer = new byte[CHUNK];
        response.setContentType("application/octet-stream");
        response.setContentLengthLong(bytes);
        OutputStream out = response.getOutputStream();
        for (long left = bytes; left > 0; left -= CHUNK) {
            out.write(buffer, 0, (int) Math.min(CHUNK, left));
        }
    }

    /** Not a request parameter: for a form, asking for those reads the body. */
    private static long millis(HttpServletRequest request) {
        String query = request.getQueryString();
        return query != null && query.startsWith("ms=") ? Long.parseLong(query.substring(3)) : 0;
    }
}
