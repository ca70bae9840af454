{{/*
Names and labels of the chart's own objects.
*/}}

{{- define "token-sidecar.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Where it is a value by itself it goes through toYaml, as other given names do: `123` and `on` are no text in YAML. */}}
{{- define "token-sidecar.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{/* Prefix of object names. Leaves room for the longest suffixes, "-injector-certificates" and "-injector-self-managed". */}}
{{- define "token-sidecar.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- /* Helm allows releases more names than Kubernetes allows Services. */ -}}
{{- if not (regexMatch "^[a-z]" $full) -}}
{{-   fail (printf "the release's name %q does not begin with a letter, as names of Services must: set fullnameOverride" .Release.Name) -}}
{{- end -}}
{{- $full | replace "." "-" | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "token-sidecar.injector.fullname" -}}
{{- printf "%s-injector" (include "token-sidecar.fullname" .) -}}
{{- end -}}

{{- define "token-sidecar.issuer.fullname" -}}
{{- printf "%s-issuer" (include "token-sidecar.fullname" .) -}}
{{- end -}}

{{/*
Cluster-wide objects carry the namespace too, so that two releases of one name do not meet. At most 113 characters, of the 253
that they may have: cut off, those of the components of one release would meet.
*/}}
{{- define "token-sidecar.injector.clusterName" -}}
{{- printf "%s-%s" (include "token-sidecar.namespace" .) (include "token-sidecar.injector.fullname" .) -}}
{{- end -}}

{{/* Arguments: root, component, and extra for labels of this object alone, which win. */}}
{{- define "token-sidecar.labels" -}}
{{ include "token-sidecar.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: token-sidecar
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with merge (dict) (default dict .extra) (default dict .root.Values.commonLabels) }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Arguments: root, component. */}}
{{- define "token-sidecar.selectorLabels" -}}
app.kubernetes.io/name: {{ include "token-sidecar.name" .root | toYaml }}
app.kubernetes.io/instance: {{ toYaml .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Fails with a sentence where the schema could only show its pattern. Arguments: what stands before a name, values, names of URLs among them. */}}
{{- define "token-sidecar.checkUrls" -}}
{{- $values := index . 1 -}}
{{- range $name := slice . 2 -}}
{{-   $url := default "" (get $values $name) -}}
{{-   if not (regexMatch "^(https?://|$)" $url) -}}
{{-     fail (printf "%s%s: write a URL that begins with https://, such as https://sso.example.com, instead of %q" (index $ 0) $name (regexReplaceAll "[?].*" $url "?…")) -}}
{{-   end -}}
{{- end -}}
{{- end -}}

{{/* The image as `repository:tag` or `repository@digest`, from the registry that all charts share where one is named. */}}
{{- define "token-sidecar.image" -}}
{{- $registry := .Values.global.imageRegistry -}}
{{- with .Values.image -}}
{{- $repository := .repository -}}
{{- if $registry -}}
{{- /* A first part with a dot or a port is a registry. */ -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" $registry) (regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" .repository "") -}}
{{- end -}}
{{- if .digest -}}
{{- printf "%s@%s" $repository .digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default $.Chart.AppVersion .tag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "token-sidecar.injector.serviceAccountName" -}}
{{- if .Values.injector.serviceAccount.create -}}
{{- default (include "token-sidecar.injector.fullname" .) .Values.injector.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.injector.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "token-sidecar.issuer.serviceAccountName" -}}
{{- if .Values.issuer.serviceAccount.create -}}
{{- default (include "token-sidecar.issuer.fullname" .) .Values.issuer.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.issuer.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Self-managed certificates have a Secret of another name, so that a change of the source leaves the one in use alone. */}}
{{- define "token-sidecar.injector.certificateSecret" -}}
{{- if eq .Values.injector.certificates.source "existing" -}}
{{- required "injector.certificates.existing.secretName: name the TLS Secret when injector.certificates.source is \"existing\"" .Values.injector.certificates.existing.secretName -}}
{{- else -}}
{{- /* Each source has one of its own: Helm takes over no Secret that another made. */ -}}
{{- printf "%s-%s" (include "token-sidecar.injector.fullname" .) (eq .Values.injector.certificates.source "helm" | ternary "certificates" .Values.injector.certificates.source) -}}
{{- end -}}
{{- end -}}

{{- define "token-sidecar.broker.fullname" -}}
{{- printf "%s-broker" (include "token-sidecar.fullname" .) -}}
{{- end -}}

{{/* Cluster-wide objects carry the namespace too, so that two releases of one name do not meet. */}}
{{- define "token-sidecar.broker.clusterName" -}}
{{- printf "%s-%s" (include "token-sidecar.namespace" .) (include "token-sidecar.broker.fullname" .) -}}
{{- end -}}

{{- define "token-sidecar.gateway.fullname" -}}
{{- printf "%s-gateway" (include "token-sidecar.fullname" .) -}}
{{- end -}}

{{- define "token-sidecar.gateway.clusterName" -}}
{{- printf "%s-%s" (include "token-sidecar.namespace" .) (include "token-sidecar.gateway.fullname" .) -}}
{{- end -}}

{{- define "token-sidecar.gateway.serviceAccountName" -}}
{{- if .Values.gateway.serviceAccount.create -}}
{{- default (include "token-sidecar.gateway.fullname" .) .Values.gateway.serviceAccount.name -}}
{{- else -}}
{{- required "gateway.serviceAccount.name: name the account that the gateway runs as when gateway.serviceAccount.create is false" .Values.gateway.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "token-sidecar.gateway.certificateSecret" -}}
{{- if eq .Values.gateway.certificates.source "existing" -}}
{{- required "gateway.certificates.existing.secretName: name the TLS Secret, or set gateway.certificates.source to \"cert-manager\"" .Values.gateway.certificates.existing.secretName -}}
{{- else -}}
{{- printf "%s-certificate" (include "token-sidecar.gateway.fullname" .) -}}
{{- end -}}
{{- end -}}

{{/* Where callers of every namespace find it. */}}
{{- define "token-sidecar.gateway.host" -}}
{{- printf "%s.%s.svc" (include "token-sidecar.gateway.fullname" .) (include "token-sidecar.namespace" .) -}}
{{- end -}}

{{- define "token-sidecar.broker.serviceAccountName" -}}
{{- if .Values.broker.serviceAccount.create -}}
{{- default (include "token-sidecar.broker.fullname" .) .Values.broker.serviceAccount.name -}}
{{- else -}}
{{- required "broker.serviceAccount.name: name the account that may do what the broker has to when broker.serviceAccount.create is false" .Values.broker.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "token-sidecar.broker.certificateSecret" -}}
{{- if eq .Values.broker.certificates.source "existing" -}}
{{- required "broker.certificates.existing.secretName: name the TLS Secret when broker.certificates.source is \"existing\"" .Values.broker.certificates.existing.secretName -}}
{{- else -}}
{{- /* Helm takes over no Secret that cert-manager made. */ -}}
{{- printf "%s-%s" (include "token-sidecar.broker.fullname" .) (eq .Values.broker.certificates.source "cert-manager" | ternary "cert-manager" "certificate") -}}
{{- end -}}
{{- end -}}

{{/* Where sidecars of every namespace find it. */}}
{{- define "token-sidecar.broker.host" -}}
{{- printf "%s.%s.svc" (include "token-sidecar.broker.fullname" .) (include "token-sidecar.namespace" .) -}}
{{- end -}}
