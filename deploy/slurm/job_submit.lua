-- SPDX-License-Identifier: Apache-2.0
-- For job_submit.lua beside slurm.conf. A job with --sluice=share:25,mem:4G gets
-- --gres=sluice:share:25,sluice:mem:4G.
-- A site that has such a file calls sluice_gres(job_desc) from its own. What the option holds is checked by the plugin.

function sluice_gres(job_desc)
  local asked = nil
  for _, entry in pairs(job_desc.spank_job_env or {}) do
    asked = asked or entry:match("_SLURM_SPANK_OPTION_sluice_sluice=(.*)$")
  end
  local has = job_desc.gres or ""
  if asked == nil or has:find("sluice", 1, true) then return end
  local share = asked:match("share:(%d+)")
  local memory, unit = asked:match("mem:(%d+)([KMGTkmgt])")
  if share == nil or memory == nil then return end
  local gres = "sluice:share:" .. share .. ",sluice:mem:" .. memory .. unit
  job_desc.gres = has == "" and gres or has .. "," .. gres  -- Slurm adds "gres:" to each, later versions "gres/".
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  sluice_gres(job_desc)
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end
