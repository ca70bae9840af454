{{/* A HorizontalPodAutoscaler of a Deployment, on CPU and, where an adapter serves them, on requests in flight. Arguments: root, component. */}}
{{- define "token-sidecar.autoscaler" -}}
{{- $component := pick . "root" "component" -}}
{{- $name := include (printf "token-sidecar.%s.fullname" .component) .root -}}
{{- with (get .root.Values .component).autoscaling -}}
{{- if gt (int .minReplicas) (int .maxReplicas) -}}
{{-   fail (printf "%s.autoscaling.maxReplicas: %d is less than minReplicas, which is %d" $component.component (int .maxReplicas) (int .minReplicas)) -}}
{{- end -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ $name }}
  namespace: {{ include "token-sidecar.namespace" $component.root | toYaml }}
  labels:
    {{- include "token-sidecar.labels" $component | nindent 4 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ $name }}
  minReplicas: {{ .minReplicas }}
  maxReplicas: {{ .maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: {{ .targetCPUUtilizationPercentage }}
    {{- with .requestsInFlight }}
    {{- if .enabled }}
    - type: Pods
      pods:
        metric:
          name: {{ .metric }}
        target:
          type: AverageValue
          averageValue: {{ .target | quote }}
    {{- end }}
    {{- end }}
  {{- with .behavior }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
{{- end -}}
