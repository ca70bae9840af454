{{/* CEL: the pod carries the annotation that asks for the sidecar. */}}
{{- define "token-sidecar.injector.asksFor" -}}
has(object.metadata.annotations) &&
'token-sidecar.dev/inject' in object.metadata.annotations &&
object.metadata.annotations['token-sidecar.dev/inject'] != 'false'
{{- end -}}

{{/* Namespaces whose pods may be injected. */}}
{{- define "token-sidecar.injector.namespaceSelector" -}}
{{- with .Values.injector.webhook -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values:
      {{- toYaml (append .excludedNamespaces $.Release.Namespace | uniq) | nindent 6 }}
  - key: token-sidecar.dev/injection
    {{- if eq .namespaces "labelled" }}
    operator: In
    values: ["enabled"]
    {{- else }}
    operator: NotIn
    values: ["disabled"]
    {{- end }}
  {{- with .namespaceExpressions }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
{{- end -}}
