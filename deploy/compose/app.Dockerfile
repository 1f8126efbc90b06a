# The sample server (internal/test/lab/sample-server is the build context) as any
# Spring Boot application: a JRE, a jar, and a user of its own.
#
# --target prebuilt takes target/sample-server.jar, which `mvn package` made.

ARG JRE=eclipse-temurin:17-jre
FROM ${JRE} AS base
USER 1001:999
WORKDIR /app
EXPOSE 8080
ENTRYPOINT ["java", "-XX:MaxRAMPercentage=50", "-jar", "/app/sample-server.jar"]

FROM base AS prebuilt
COPY target/sample-server.jar /app/sample-server.jar

FROM maven:3-eclipse-temurin-17 AS build
WORKDIR /src
COPY pom.xml .
COPY src src
RUN mvn -q -B package

FROM base AS app
COPY --from=build /src/target/sample-server.jar /app/sample-server.jar
