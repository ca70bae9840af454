{{/*
What the injector gives a pod whose annotations are silent: one variable for each annotation.
*/}}
{{- define "token-sidecar.injector.defaults" -}}
{{- $native := toString .Values.sidecar.native -}}
{{- /* Without the API the injector cannot read the cluster's version; Helm has. */ -}}
{{- if and (eq $native "auto") (not .Values.injector.kubernetesApi.enabled) -}}
{{-   $native = semverCompare ">=1.29.0-0" .Capabilities.KubeVersion.Version | toString -}}
{{- end -}}
{{- include "token-sidecar.checkUrls" (list "sidecar." .Values.sidecar "authUrl" "upstream") -}}
{{- $annotations := toString .Values.sidecar.prometheusAnnotations -}}
{{- /* Scraped by both, a pod would be counted twice. */ -}}
{{- if eq $annotations "auto" -}}
{{-   $annotations = not .Values.monitoring.podMonitor.enabled | toString -}}
{{- end -}}
{{- /* The injector would not start: the client secret travels there. Loopback is this pod itself. */ -}}
{{- if and (hasPrefix "http://" .Values.sidecar.authUrl) (not .Values.sidecar.allowInsecureTokenUrl) -}}
{{-   if not (regexMatch "^http://(localhost|127(\\.[0-9]{1,3}){3}|\\[::1\\])([:/]|$)" .Values.sidecar.authUrl) -}}
{{-     fail "sidecar.authUrl: http needs sidecar.allowInsecureTokenUrl, because the client secret would travel in clear" -}}
{{-   end -}}
{{- end -}}
{{- $allowed := default dict .Values.injector.allowed -}}
{{- /* Nor would it with these: whoever writes that ConfigMap could pass for any of the hosts. */ -}}
{{- if and .Values.sidecar.caConfigMap (or (get $allowed "authHosts") (get $allowed "upstreamHosts")) -}}
{{-   fail "sidecar.caConfigMap: leave it empty where injector.allowed limits hosts, because whoever writes that ConfigMap could pass for any of them" -}}
{{- end -}}
{{- with .Values.sidecar -}}
- name: TOKEN_SIDECAR_DEFAULT_IMAGE
  value: {{ default (include "token-sidecar.image" $) .image | quote }}
- name: TOKEN_SIDECAR_DEFAULT_IMAGE_PULL_POLICY
  value: {{ default $.Values.image.pullPolicy .imagePullPolicy }}
{{- with include "token-sidecar.pullSecrets" (list (default $.Values.global.imagePullSecrets .imagePullSecrets)) | fromYamlArray }}
{{- $names := list }}{{ range . }}{{ $names = append $names .name }}{{ end }}
- name: TOKEN_SIDECAR_DEFAULT_IMAGE_PULL_SECRETS
  value: {{ join "," $names | quote }}
{{- end }}
{{- if eq (include "token-sidecar.platformAssignsUsers" $) "true" }}
- name: TOKEN_SIDECAR_DEFAULT_RUN_AS_USER
  value: none
{{- end }}
{{- with .authUrl }}
- name: TOKEN_SIDECAR_DEFAULT_AUTH_URL
  value: {{ . | quote }}
{{- end }}
- name: TOKEN_SIDECAR_DEFAULT_REALM
  value: {{ .realm | quote }}
{{- if .allowInsecureTokenUrl }}
- name: TOKEN_SIDECAR_DEFAULT_ALLOW_INSECURE_TOKEN_URL
  value: "true"
{{- end }}
{{- with .scope }}
- name: TOKEN_SIDECAR_DEFAULT_SCOPE
  value: {{ . | quote }}
{{- end }}
{{- with .audience }}
- name: TOKEN_SIDECAR_DEFAULT_AUDIENCE
  value: {{ . | quote }}
{{- end }}
{{- with .upstream }}
- name: TOKEN_SIDECAR_DEFAULT_UPSTREAM
  value: {{ . | quote }}
{{- end }}
{{- with .caConfigMap }}
- name: TOKEN_SIDECAR_DEFAULT_CA_CONFIG_MAP
  value: {{ . | quote }}
{{- end }}
{{- with .secret }}
- name: TOKEN_SIDECAR_DEFAULT_SECRET
  value: {{ . | quote }}
{{- end }}
- name: TOKEN_SIDECAR_DEFAULT_MODE
  value: {{ .mode }}
{{- if ne $native "auto" }}
- name: TOKEN_SIDECAR_DEFAULT_NATIVE_SIDECAR
  value: {{ $native | quote }}
{{- end }}
- name: TOKEN_SIDECAR_DEFAULT_LOG_LEVEL
  value: {{ include "token-sidecar.logLevel" (dict "root" $ "level" .logLevel) }}
- name: TOKEN_SIDECAR_DEFAULT_STARTUP_SECONDS
  value: {{ .startupSeconds | quote }}
- name: TOKEN_SIDECAR_DEFAULT_PROMETHEUS_ANNOTATIONS
  value: {{ $annotations | quote }}
{{- range $kind := list "requests" "limits" }}
{{- range $resource := list "cpu" "memory" }}
{{- with dig $kind $resource "" (default dict $.Values.sidecar.resources) }}
- name: TOKEN_SIDECAR_DEFAULT_{{ upper $resource }}_{{ trimSuffix "s" $kind | upper }}
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/*
What annotations may name. The content is empty where nothing is limited.
*/}}
{{- define "token-sidecar.injector.allowed" -}}
{{- range $key := list "authHosts" "upstreamHosts" }}
{{-   range $host := default list (get (default dict $.Values.injector.allowed) $key) }}
{{-     if not (regexMatch "^(http://)?[^/]*$" $host) }}
{{-       fail (printf "injector.allowed.%s: write a host without https:// and path, such as sso.example.com, sso.example.com:8443 or *.example.com, instead of %q" $key $host) }}
{{-     end }}
{{-   end }}
{{- end }}
{{- range $key, $name := dict "authHosts" "AUTH_HOSTS" "upstreamHosts" "UPSTREAM_HOSTS" "images" "IMAGES" "configMaps" "CONFIG_MAPS" "modes" "MODES" }}
{{- with get (default dict $.Values.injector.allowed) $key }}
- name: TOKEN_SIDECAR_ALLOWED_{{ $name }}
  value: {{ join "," . | quote }}
{{- end }}
{{- end }}
{{- end -}}
