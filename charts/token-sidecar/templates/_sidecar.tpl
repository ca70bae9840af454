{{/*
Templates for other charts: the sidecar without a webhook.

Every one of them takes a dict of
  root    the including chart's own scope, `.` or `$`
  values  what differs from this chart's `sidecar` values: secret, authUrl, upstream, …

  spec:
    securityContext:
      {{- include "token-sidecar.podSecurityContext" (dict "root" . "values" .Values.tokens) | nindent 6 }}
    imagePullSecrets:
      {{- include "token-sidecar.imagePullSecrets" (dict "root" . "values" .Values.tokens) | nindent 6 }}
    initContainers:
      {{- include "token-sidecar.initContainers" (dict "root" . "values" .Values.tokens) | nindent 6 }}
    containers:
      - name: app
        env:
          {{- include "token-sidecar.appEnv" (dict "root" . "values" .Values.tokens) | nindent 10 }}
      {{- include "token-sidecar.containers" (dict "root" . "values" .Values.tokens) | nindent 6 }}
    volumes:
      {{- include "token-sidecar.volumes" (dict "root" . "values" .Values.tokens) | nindent 6 }}
*/}}

{{/* The resolved settings, as YAML, for `fromYaml`. */}}
{{- define "token-sidecar.settings" -}}
{{- $root := .root -}}
{{- $own := dict -}}
{{- if eq $root.Chart.Name "token-sidecar" -}}
{{-   $own = dict "Chart" $root.Chart "Values" $root.Values -}}
{{- else -}}
{{-   range $root.Subcharts -}}
{{-     if eq .Chart.Name "token-sidecar" -}}
{{-       $own = dict "Chart" .Chart "Values" .Values -}}
{{-     end -}}
{{-   end -}}
{{- end -}}
{{- if not $own -}}
{{-   fail (printf "chart %s includes a token-sidecar template without an enabled dependency on the chart token-sidecar" $root.Chart.Name) -}}
{{- end -}}
{{- $given := default dict .values -}}
{{- $settings := mergeOverwrite (deepCopy $own.Values.sidecar) (deepCopy $given) -}}
{{- if $settings.configMap -}}
{{- /* Beside a file, a default upstream would add a route that it does not have, and a default provider would replace its own. */ -}}
{{-   $defaults := omit $own.Values.sidecar "authUrl" "realm" "tokenUrl" "allowInsecureTokenUrl" "upstream" "scope" "audience" -}}
{{-   $settings = mergeOverwrite (deepCopy $defaults) (deepCopy $given) (pick $settings "configMap") -}}
{{- end -}}
{{- if not $settings.image -}}
{{-   $_ := set $settings "image" (include "token-sidecar.image" (dict "Values" $own.Values "Chart" $own.Chart)) -}}
{{- end -}}
{{- if not $settings.imagePullPolicy -}}
{{-   $_ := set $settings "imagePullPolicy" $own.Values.image.pullPolicy -}}
{{- end -}}
{{- if eq (toString $settings.native) "auto" -}}
{{-   $_ := set $settings "native" (semverCompare ">=1.29.0-0" $root.Capabilities.KubeVersion.Version) -}}
{{- else -}}
{{-   $_ := set $settings "native" (eq (toString $settings.native) "true") -}}
{{- end -}}
{{- $_ := set $settings "logLevel" (include "token-sidecar.logLevel" (dict "root" $own "level" $settings.logLevel)) -}}
{{- $assigned := include "token-sidecar.platformAssignsUsers" (dict "Values" $own.Values "Capabilities" $root.Capabilities) -}}
{{- $_ := set $settings "platformAssignsUsers" (eq $assigned "true") -}}
{{- if not $settings.imagePullSecrets -}}
{{-   $_ := set $settings "imagePullSecrets" $own.Values.global.imagePullSecrets -}}
{{- end -}}
{{- include "token-sidecar.checkUrls" (list "token-sidecar: " $settings "authUrl" "tokenUrl" "upstream") -}}
{{- $problems := list -}}
{{- if not $settings.configMap -}}
{{-   if not (or $settings.authUrl $settings.tokenUrl) -}}
{{-     $problems = append $problems "authUrl or tokenUrl: say where tokens come from" -}}
{{-   end -}}
{{-   if not $settings.upstream -}}
{{-     $problems = append $problems "upstream: say where the app's requests go" -}}
{{-   end -}}
{{-   if eq $settings.mode "forward" -}}
{{-     $problems = append $problems "configMap: mode \"forward\" needs one, whose forwardProxy lists the hosts allowed" -}}
{{-   end -}}
{{- end -}}
{{- if and $settings.authUrl $settings.tokenUrl -}}
{{-   $problems = append $problems "authUrl and tokenUrl: set one of them" -}}
{{- end -}}
{{- $endpoint := default (default "" $settings.authUrl) $settings.tokenUrl -}}
{{- if and (hasPrefix "http://" $endpoint) (not $settings.allowInsecureTokenUrl) -}}
{{-   $problems = append $problems (printf "allowInsecureTokenUrl: %s would carry the client secret in clear; use https:// or allow it" (regexReplaceAll "[?].*" $endpoint "?…")) -}}
{{- end -}}
{{- if not $settings.secret -}}
{{-   $problems = append $problems "secret: name the Secret with client_id and client_secret" -}}
{{- end -}}
{{- if not (has $settings.mode (list "reverse" "forward")) -}}
{{-   $problems = append $problems (printf "mode: %q is neither \"reverse\" nor \"forward\"" $settings.mode) -}}
{{- end -}}
{{- if $problems -}}
{{-   fail (printf "token-sidecar: %s" (join "; " $problems)) -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* Of a chart that nobody depends on nothing is included: what is for that alone would have no effect. */}}
{{- define "token-sidecar.refuseUnused" -}}
{{- if .Chart.IsRoot -}}
{{-   range $name := list "tokenUrl" "configMap" "env" "volumes" "volumeMounts" -}}
{{-     if get $.Values.sidecar $name -}}
{{-       fail (printf "sidecar.%s: it is for charts that include the sidecar's template, and has no effect on pods that the injector serves: name a profile or a ConfigMap in their annotations" $name) -}}
{{-     end -}}
{{-   end -}}
{{-   if ne (int .Values.sidecar.preStopSeconds) 5 -}}
{{-     fail "sidecar.preStopSeconds: it is for charts that include the sidecar's template; the injector goes by the grace period of each pod" -}}
{{-   end -}}
{{- end -}}
{{- end -}}

{{/* The container itself. Native: it belongs first among the init containers. Otherwise: last among the containers. */}}
{{- define "token-sidecar.sidecar" -}}
{{- $settings := include "token-sidecar.settings" . | fromYaml -}}
- name: token-sidecar
  image: {{ $settings.image | quote }}
  imagePullPolicy: {{ $settings.imagePullPolicy }}
  args:
    - proxy
  {{- if $settings.native }}
  restartPolicy: Always
  {{- end }}
  env:
    {{- with $settings.configMap }}
    - name: TOKEN_SIDECAR_CONFIG
      value: /etc/token-sidecar/token-sidecar.yaml
    {{- end }}
    {{- with $settings.tokenUrl }}
    - name: TOKEN_SIDECAR_TOKEN_URL
      value: {{ . | quote }}
    {{- end }}
    {{- with $settings.authUrl }}
    - name: TOKEN_SIDECAR_AUTH_URL
      value: {{ . | quote }}
    {{- end }}
    {{- if and $settings.realm (not $settings.tokenUrl) }}
    - name: TOKEN_SIDECAR_REALM
      value: {{ $settings.realm | quote }}
    {{- end }}
    {{- if $settings.allowInsecureTokenUrl }}
    - name: TOKEN_SIDECAR_ALLOW_INSECURE_TOKEN_URL
      value: "true"
    {{- end }}
    {{- with $settings.upstream }}
    - name: TOKEN_SIDECAR_UPSTREAM
      value: {{ . | quote }}
    {{- end }}
    {{- with $settings.scope }}
    - name: TOKEN_SIDECAR_SCOPE
      value: {{ . | quote }}
    {{- end }}
    {{- with $settings.audience }}
    - name: TOKEN_SIDECAR_AUDIENCE
      value: {{ . | quote }}
    {{- end }}
    - name: TOKEN_SIDECAR_LOG_LEVEL
      value: {{ $settings.logLevel | quote }}
    {{- if $settings.caConfigMap }}
    {{- /* Node reads it at its start, and trusts what is in it beside the public CAs. */}}
    - name: NODE_EXTRA_CA_CERTS
      value: /etc/token-sidecar-ca/ca.crt
    {{- end }}
    {{- /* What the pod is called, for the status page. */}}
    - name: POD_NAME
      valueFrom:
        fieldRef:
          fieldPath: metadata.name
    - name: POD_NAMESPACE
      valueFrom:
        fieldRef:
          fieldPath: metadata.namespace
    - name: NODE_NAME
      valueFrom:
        fieldRef:
          fieldPath: spec.nodeName
    {{- with $settings.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    - name: token-admin
      containerPort: 15081
      protocol: TCP
  {{- /* Holds back the app's containers until the first token is there. */}}
  startupProbe:
    httpGet:
      path: /startupz
      port: token-admin
    {{- /* The first second belongs to Node and the first grant. */}}
    initialDelaySeconds: 1
    periodSeconds: 1
    failureThreshold: {{ $settings.startupSeconds }}
  readinessProbe:
    httpGet:
      path: /readyz
      port: token-admin
    periodSeconds: 5
    failureThreshold: 2
  livenessProbe:
    httpGet:
      path: /livez
      port: token-admin
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 6
  {{- /* The kubelet stops a native sidecar after the app by itself. Node waits, as the image has no `sleep`. */}}
  {{- if and $settings.preStopSeconds (not $settings.native) }}
  lifecycle:
    preStop:
      exec:
        command:
          - node
          - -e
          - setTimeout(() => {}, {{ mul 1000 (int $settings.preStopSeconds) }})
  {{- end }}
  resources:
    {{- toYaml $settings.resources | nindent 4 }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    runAsNonRoot: true
    {{- if not $settings.platformAssignsUsers }}
    runAsUser: 65532
    runAsGroup: 65532
    {{- end }}
    capabilities:
      drop:
        - ALL
    seccompProfile:
      type: RuntimeDefault
  terminationMessagePath: /dev/termination-log
  terminationMessagePolicy: FallbackToLogsOnError
  volumeMounts:
    - name: token-sidecar-credentials
      mountPath: /var/run/secrets/token-sidecar
      readOnly: true
    {{- if $settings.configMap }}
    - name: token-sidecar-config
      mountPath: /etc/token-sidecar
      readOnly: true
    {{- end }}
    {{- if $settings.caConfigMap }}
    - name: token-sidecar-ca
      mountPath: /etc/token-sidecar-ca
      readOnly: true
    {{- end }}
    {{- with $settings.volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* The sidecar where the cluster has native sidecars, else nothing. */}}
{{- define "token-sidecar.initContainers" -}}
{{- if (include "token-sidecar.settings" . | fromYaml).native -}}
{{- include "token-sidecar.sidecar" . -}}
{{- end -}}
{{- end -}}

{{/* The sidecar where the cluster has no native sidecars, else nothing. */}}
{{- define "token-sidecar.containers" -}}
{{- if not (include "token-sidecar.settings" . | fromYaml).native -}}
{{- include "token-sidecar.sidecar" . -}}
{{- end -}}
{{- end -}}

{{/* Volumes of the sidecar. */}}
{{- define "token-sidecar.volumes" -}}
{{- $settings := include "token-sidecar.settings" . | fromYaml -}}
- name: token-sidecar-credentials
  projected:
    {{- /* 0440: readable by root and by the pod's fsGroup. */}}
    defaultMode: 288
    sources:
      - secret:
          name: {{ $settings.secret | quote }}
          optional: false
{{- with $settings.configMap }}
- name: token-sidecar-config
  configMap:
    name: {{ . | quote }}
    optional: false
{{- end }}
{{- with $settings.caConfigMap }}
- name: token-sidecar-ca
  configMap:
    name: {{ . | quote }}
    optional: false
    items:
      - key: ca.crt
        path: ca.crt
{{- end }}
{{- with $settings.volumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What the pod's own securityContext needs, so that the sidecar's user can read the Secret. OpenShift gives it by itself. */}}
{{- define "token-sidecar.podSecurityContext" -}}
{{- if not (include "token-sidecar.settings" . | fromYaml).platformAssignsUsers -}}
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
{{- end -}}
{{- end -}}

{{/* References to the Secrets that the sidecar's image is pulled with; empty when there are none. */}}
{{- define "token-sidecar.imagePullSecrets" -}}
{{- include "token-sidecar.pullSecrets" (list (include "token-sidecar.settings" . | fromYaml).imagePullSecrets) | trim -}}
{{- end -}}

{{/* Environment of the app's containers; empty in reverse mode. Both spellings, because clients disagree. */}}
{{- define "token-sidecar.appEnv" -}}
{{- if eq (include "token-sidecar.settings" . | fromYaml).mode "forward" -}}
- name: HTTP_PROXY
  value: http://127.0.0.1:15080
- name: http_proxy
  value: http://127.0.0.1:15080
- name: NO_PROXY
  value: localhost,127.0.0.1,::1
- name: no_proxy
  value: localhost,127.0.0.1,::1
{{- end -}}
{{- end -}}
