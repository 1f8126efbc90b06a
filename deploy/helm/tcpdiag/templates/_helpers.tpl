{{- define "tcpdiag.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The release's name alone where it contains the chart's: "tcpdiag", not "tcpdiag-tcpdiag". */}}
{{- define "tcpdiag.fullname" -}}
{{- $name := include "tcpdiag.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What never changes between two versions: a DaemonSet's selector cannot. */}}
{{- define "tcpdiag.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tcpdiag.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tcpdiag.labels" -}}
{{ include "tcpdiag.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: agent
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "tcpdiag.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "tcpdiag.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "tcpdiag.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* "true" where the archiver runs. An upgrade with --reuse-values has no value that is newer than the
     release. */}}
{{- define "tcpdiag.archive" -}}
{{- with index .Values "archive" -}}
{{- if .enabled -}}
{{- if not (include "tcpdiag.incidents" $) -}}{{- fail "archive.enabled: incidents.volume none leaves nothing to archive" -}}{{- end -}}
{{- if not (or .bucket .otlpEndpoint) -}}{{- fail "archive.enabled: give archive.bucket, archive.otlpEndpoint or both" -}}{{- end -}}
true
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "tcpdiag.archiveImage" -}}
{{- with .Values.archive.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The kind of the recordings' volume, empty for none. An upgrade with --reuse-values
     has no value that is newer than the release: then there is none, as before. */}}
{{- define "tcpdiag.incidents" -}}
{{- with index .Values "incidents" -}}
{{- if ne .volume "none" -}}{{ .volume }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* Where the kubelet's logs are on the node, empty for no names. An upgrade with
     --reuse-values has no value that is newer than the release: then as before. */}}
{{- define "tcpdiag.kubeletLogs" -}}
{{- index .Values "kubeletLogs" | default "" | trimSuffix "/" -}}
{{- end -}}

{{/* The pod of `helm test` is none of the agents: what selects these does not find it. */}}
{{- define "tcpdiag.testname" -}}
{{- printf "%s-test" (include "tcpdiag.fullname" . | trunc 58 | trimSuffix "-") -}}
{{- end -}}

{{- define "tcpdiag.testLabels" -}}
app.kubernetes.io/name: {{ include "tcpdiag.name" . | trunc 58 | trimSuffix "-" }}-test
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: test
{{- end -}}

{{/* How many scrape the agents. An upgrade with --reuse-values has no value that is newer than the
     release. */}}
{{- define "tcpdiag.scrapers" -}}
{{- $n := 0 -}}
{{- range list "podMonitor" "serviceMonitor" "scrapeConfig" -}}
{{- with index $.Values . -}}{{- if .enabled -}}{{- $n = add1 $n -}}{{- end -}}{{- end -}}
{{- end -}}
{{- if index .Values "scrapeAnnotations" -}}{{- $n = add1 $n -}}{{- end -}}
{{- $n -}}
{{- end -}}

{{/* Series of a node's agent carry the node's name, whatever scrapes them, and not
     the agent's own pod, namespace and container under the names by which
     alerts and dashboards name those of an application: as container the agent
     exports the listener's. */}}
{{- define "tcpdiag.relabelings" -}}
- sourceLabels: [__meta_kubernetes_pod_node_name]
  targetLabel: node
- sourceLabels: [__meta_kubernetes_pod_name]
  targetLabel: agent_pod
- sourceLabels: [__meta_kubernetes_namespace]
  targetLabel: agent_namespace
- action: labeldrop
  regex: pod|namespace|container
{{- with .extra }}
{{ toYaml . }}
{{- end }}
{{- end -}}
