/* The drafters, for other folders. */
#pragma once

#include "draft/blend.h"
#include "draft/drafter.h"
#include "draft/drafter_kind.h"
#include "draft/lookup_drafter.h"
#include "draft/medusa_drafter.h"
#include "draft/medusa_heads.h"
#include "draft/model_drafter.h"
