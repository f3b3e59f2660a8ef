{{- define "kvasir.selector" -}}
app.kubernetes.io/name: kvasir
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "kvasir.labels" -}}
{{ include "kvasir.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
