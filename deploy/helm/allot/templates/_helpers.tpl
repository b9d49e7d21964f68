{{- define "allot.labels" -}}
app.kubernetes.io/name: allot
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "allot.selector" -}}
app.kubernetes.io/name: allot
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "allot.tag" -}}
{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "allot.redisUrl" -}}
{{- if .Values.redis.external.address -}}
redis://{{ .Values.redis.external.address }}/0
{{- else -}}
sentinel://{{ .Release.Name }}-redis:26379/allot?min_replicas={{ .Values.redis.sentinel.minReplicas }}
{{- end -}}
{{- end }}

{{- define "allot.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "allot.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
{{- end }}

{{- define "allot.environment" -}}
- name: ALLOT_REDIS_URL
  value: {{ include "allot.redisUrl" . | quote }}
- name: ALLOT_REDIS_PASSWORD_FILE
  value: /run/secrets/redis/password
{{- if .Values.together.enabled }}
- name: ALLOT_ARENA_DIR
  value: /arena
- name: ALLOT_ARENA_BYTES
  value: {{ .Values.together.arenaBytes | int64 | quote }}
{{- else }}
- name: ALLOT_STORE_URL
  value: {{ .Values.store.url | quote }}
{{- if .Values.store.endpoint }}
- name: ALLOT_S3_ENDPOINT_URL
  value: {{ .Values.store.endpoint | quote }}
{{- end }}
- name: AWS_DEFAULT_REGION
  value: {{ .Values.store.region | quote }}
{{- if .Values.store.credentialsSecret }}
- name: AWS_ACCESS_KEY_ID
  valueFrom: {secretKeyRef: {name: {{ .Values.store.credentialsSecret }}, key: access}}
- name: AWS_SECRET_ACCESS_KEY
  valueFrom: {secretKeyRef: {name: {{ .Values.store.credentialsSecret }}, key: secret}}
{{- end }}
{{- end }}
- name: ALLOT_DATA_DIR
  value: /data
- name: ALLOT_LOG_FORMAT
  value: json
{{- if .Values.otlpEndpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .Values.otlpEndpoint | quote }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
