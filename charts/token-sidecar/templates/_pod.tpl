{{/*
What the pods of the injector, the issuer and the check have in common.
*/}}

{{/* A component's own setting, else the one that all of them share. Arguments: root, values, name. */}}
{{- define "token-sidecar.shared" -}}
{{- with default (get .root.Values.global .name) (get .values .name) -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{/* Level of a component that names none. Other charts mean something else by the shared one, such as a number. Arguments: root, level. */}}
{{- define "token-sidecar.logLevel" -}}
{{- $shared := toString .root.Values.global.logLevel -}}
{{- $known := has $shared (list "trace" "debug" "info" "warn" "error" "fatal" "silent") -}}
{{- coalesce .level (ternary $shared "" $known) "info" -}}
{{- end -}}

{{/*
References to pull Secrets, each once. Other charts that share `global` may have given plain names there.
Arguments: lists.
*/}}
{{- define "token-sidecar.pullSecrets" -}}
{{- $names := list -}}
{{- range . -}}
{{-   range . -}}
{{-     $names = append $names (ternary (toString .) (get (ternary (dict) . (kindIs "string" .)) "name") (kindIs "string" .)) -}}
{{-   end -}}
{{- end -}}
{{- range uniq $names }}
- name: {{ . | quote }}
{{- end -}}
{{- end -}}

{{/* "true" where OpenShift assigns users and groups. Arguments: Values and Capabilities. */}}
{{- define "token-sidecar.platformAssignsUsers" -}}
{{- $compatibility := default dict .Values.global.compatibility -}}
{{- $adapt := default "auto" (default dict $compatibility.openshift).adaptSecurityContext -}}
{{- or (eq $adapt "force") (and (eq $adapt "auto") (.Capabilities.APIVersions.Has "security.openshift.io/v1")) -}}
{{- end -}}

{{/* A security context, without users and groups where the platform assigns them. Arguments: root, context. */}}
{{- define "token-sidecar.securityContext" -}}
{{- if eq (include "token-sidecar.platformAssignsUsers" .root) "true" -}}
{{- toYaml (omit .context "runAsUser" "runAsGroup" "fsGroup") -}}
{{- else -}}
{{- toYaml .context -}}
{{- end -}}
{{- end -}}

{{/* Everything of a pod but its account, containers and volumes. Arguments: root, values, component. */}}
{{- define "token-sidecar.podSettings" -}}
{{- $root := .root -}}
{{- $component := pick . "root" "component" -}}
{{- $hostUsers := get .values "hostUsers" -}}
{{- if and .values.hostNetwork (kindIs "bool" $hostUsers) (not $hostUsers) -}}
{{-   fail (printf "%s.hostUsers: a pod in the host's network has the host's users" .component) -}}
{{- end -}}
enableServiceLinks: {{ .values.enableServiceLinks }}
{{- if .values.hostNetwork }}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{- if kindIs "bool" $hostUsers }}
hostUsers: {{ $hostUsers }}
{{- end }}
{{- with .values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.hostAliases }}
hostAliases:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "token-sidecar.pullSecrets" (list .root.Values.global.imagePullSecrets .root.Values.imagePullSecrets) }}
imagePullSecrets:
  {{- . | nindent 2 }}
{{- end }}
{{- with include "token-sidecar.shared" (dict "root" .root "values" .values "name" "priorityClassName") }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.runtimeClassName }}
runtimeClassName: {{ toYaml . }}
{{- end }}
{{- with .values.schedulerName }}
schedulerName: {{ toYaml . }}
{{- end }}
terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds }}
securityContext:
  {{- include "token-sidecar.securityContext" (dict "root" .root "context" .values.podSecurityContext) | nindent 2 }}
{{- with include "token-sidecar.shared" (dict "root" .root "values" .values "name" "nodeSelector") }}
nodeSelector:
  {{- . | nindent 2 }}
{{- end }}
{{- with include "token-sidecar.shared" (dict "root" .root "values" .values "name" "tolerations") }}
tolerations:
  {{- . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  - {{- toYaml . | nindent 4 }}
    {{- if not .labelSelector }}
    labelSelector:
      matchLabels:
        {{- include "token-sidecar.selectorLabels" $component | nindent 8 }}
    {{- /* Each rollout by itself: counted with the pods that it replaces, its own could all come to one node. */}}
    {{- if not .matchLabelKeys }}
    matchLabelKeys:
      - pod-template-hash
    {{- end }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Fails where settings do not go with the kind of workload. Arguments: component, values. */}}
{{- define "token-sidecar.checkKind" -}}
{{- $type := default "" (default dict .values.strategy).type -}}
{{- if eq .values.kind "DaemonSet" -}}
{{-   if eq $type "Recreate" -}}
{{-     fail (printf "%s.strategy.type: a DaemonSet has RollingUpdate or OnDelete" .component) -}}
{{-   end -}}
{{-   if .values.autoscaling.enabled -}}
{{-     fail (printf "%s.autoscaling.enabled: set it to false with %s.kind DaemonSet, which has a replica on each node" .component .component) -}}
{{-   end -}}
{{- else if eq $type "OnDelete" -}}
{{-   fail (printf "%s.strategy.type: a Deployment has RollingUpdate or Recreate" .component) -}}
{{- end -}}
{{- end -}}

{{/* To which replicas a Service leads callers of a node: of a DaemonSet to that of the node, unless it is said. Arguments: values. */}}
{{- define "token-sidecar.internalTrafficPolicy" -}}
{{- default (ternary "Local" "Cluster" (eq .kind "DaemonSet")) .service.internalTrafficPolicy -}}
{{- end -}}

{{/* How a Deployment or DaemonSet replaces its pods. Arguments: values. */}}
{{- define "token-sidecar.strategy" -}}
{{- if .strategy -}}
{{- toYaml .strategy -}}
{{- else -}}
type: RollingUpdate
rollingUpdate:
  {{- if and .hostNetwork (gt (int .replicas) 1) }}
  {{- /* Its ports are the node's: where every node has a replica, one has to go before another can come. */}}
  maxUnavailable: 1
  maxSurge: 0
  {{- else }}
  {{- /* A replica that is ready for every one that goes: nobody waits for a rollout. */}}
  maxUnavailable: 0
  maxSurge: 1
  {{- end }}
{{- end -}}
{{- end -}}

{{/* Probes of every listener of the program: the admin endpoints. Arguments: values. */}}
{{- define "token-sidecar.probes" -}}
readinessProbe:
  httpGet:
    path: /readyz
    port: admin
  {{- toYaml .readinessProbe | nindent 2 }}
livenessProbe:
  httpGet:
    path: /livez
    port: admin
  {{- toYaml .livenessProbe | nindent 2 }}
{{- end -}}

{{/* Keeps a drain from taking all replicas at a time. Arguments: root, component. */}}
{{- define "token-sidecar.podDisruptionBudget" -}}
{{- $labels := . -}}
{{- $key := printf "%s.podDisruptionBudget" .component -}}
{{- with (get .root.Values .component).podDisruptionBudget -}}
{{- if .enabled -}}
{{- $minimum := toString .minAvailable -}}
{{- if and (eq $minimum "") (eq (toString .maxUnavailable) "") -}}
{{-   fail (printf "%s: set maxUnavailable or minAvailable" $key) -}}
{{- end -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include (printf "token-sidecar.%s.fullname" $labels.component) $labels.root }}
  namespace: {{ include "token-sidecar.namespace" $labels.root | toYaml }}
  labels:
    {{- include "token-sidecar.labels" $labels | nindent 4 }}
spec:
  selector:
    matchLabels:
      {{- include "token-sidecar.selectorLabels" $labels | nindent 6 }}
  {{- if ne $minimum "" }}
  minAvailable: {{ .minAvailable }}
  {{- else }}
  maxUnavailable: {{ .maxUnavailable }}
  {{- end }}
  {{- with .unhealthyPodEvictionPolicy }}
  unhealthyPodEvictionPolicy: {{ . }}
  {{- end }}
{{ end -}}
{{- end -}}
{{- end -}}
