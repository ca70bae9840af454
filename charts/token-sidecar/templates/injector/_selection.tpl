{{/* CEL: the pod carries the annotation that asks for the sidecar, and is no picture of a static pod, which the kubelet owns. */}}
{{- define "token-sidecar.injector.asksFor" -}}
has(object.metadata.annotations) &&
'token-sidecar.dev/inject' in object.metadata.annotations &&
object.metadata.annotations['token-sidecar.dev/inject'] != 'false' &&
!('kubernetes.io/config.mirror' in object.metadata.annotations)
{{- end -}}

{{/* Whether the cluster has ValidatingAdmissionPolicies; empty when not. Helm alone knows no kinds, so there the version decides. */}}
{{- define "token-sidecar.injector.hasPolicies" -}}
{{- if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy" -}}
true
{{- else if and (not (.Capabilities.APIVersions.Has "v1/Pod")) (semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version) -}}
true
{{- end -}}
{{- end -}}

{{/* Whether pods that asked and got nothing are refused; empty when not. */}}
{{- define "token-sidecar.injector.enforces" -}}
{{- $enforce := toString .Values.injector.webhook.enforce -}}
{{- if and (eq $enforce "true") (semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version) -}}
{{-   fail (printf "injector.webhook.enforce: needs Kubernetes 1.30 or later, this is %s" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if or (eq $enforce "true") (and (eq $enforce "auto") (include "token-sidecar.injector.hasPolicies" .)) -}}
true
{{- end -}}
{{- end -}}

{{/*
Whether the injector looks for pods that lack the sidecar; empty when not. By itself where nothing refuses such pods.
*/}}
{{- define "token-sidecar.injector.watchesPods" -}}
{{- $api := .Values.injector.kubernetesApi -}}
{{- $heals := eq (toString $api.healing) "evict" -}}
{{- $auto := and (eq (toString $api.watchPods) "auto") (or $heals (not (include "token-sidecar.injector.enforces" .))) -}}
{{- $watches := or (eq (toString $api.watchPods) "true") $auto -}}
{{- if and $heals (not (and $watches $api.enabled)) -}}
{{-   fail "injector.kubernetesApi.healing: evicting needs injector.kubernetesApi.enabled, and watchPods that is not false" -}}
{{- end -}}
{{- if and $watches $api.enabled -}}
true
{{- end -}}
{{- end -}}

{{/* Whether a Job looks, after an installation or an upgrade, if the webhook answers; empty when not. It asks the API, so it goes with its use. */}}
{{- define "token-sidecar.injector.checksStartup" -}}
{{- with .Values.injector -}}
{{- if and .enabled .startupCheck.enabled .kubernetesApi.enabled -}}
true
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Namespaces whose pods may be injected. The injector itself serves none of the system's, whatever is excluded. */}}
{{- define "token-sidecar.injector.namespaceSelector" -}}
{{- with .Values.injector.webhook -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values:
      {{- toYaml (concat (default list .excludedNamespaces) (list "kube-system" "kube-public" "kube-node-lease" (include "token-sidecar.namespace" $)) | uniq) | nindent 6 }}
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

{{/* CEL: the namespace with these `variables.labels` is one of those. */}}
{{- define "token-sidecar.injector.servesNamespace" -}}
{{- $expressions := list -}}
{{- range (include "token-sidecar.injector.namespaceSelector" . | fromYaml).matchExpressions -}}
{{-   $has := printf "%s in variables.labels" (squote .key) -}}
{{-   $hasOneOf := printf "%s && variables.labels[%s] in %s" $has (squote .key) (toJson .values) -}}
{{-   if eq .operator "In" -}}
{{-     $expressions = append $expressions (printf "(%s)" $hasOneOf) -}}
{{-   else if eq .operator "NotIn" -}}
{{-     $expressions = append $expressions (printf "!(%s)" $hasOneOf) -}}
{{-   else if eq .operator "Exists" -}}
{{-     $expressions = append $expressions (printf "(%s)" $has) -}}
{{-   else -}}
{{-     $expressions = append $expressions (printf "!(%s)" $has) -}}
{{-   end -}}
{{- end -}}
{{- join " &&\n" $expressions -}}
{{- end -}}

{{/* Egress of pods that ask the API server: to it, and to DNS. */}}
{{- define "token-sidecar.injector.apiServerEgress" -}}
- ports:
    {{- range .Values.networkPolicy.apiServerPorts }}
    - port: {{ . }}
      protocol: TCP
    {{- end }}
  {{- with .Values.networkPolicy.apiServerTo }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
- ports:
    {{- range .Values.networkPolicy.dnsPorts }}
    - port: {{ . }}
      protocol: UDP
    - port: {{ . }}
      protocol: TCP
    {{- end }}
{{- end -}}
